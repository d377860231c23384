"""What a streaming query reads next: the whole of it without Spark.

A position is offsets by partition, in the shape of Spark's Kafka connector, and beside them the ids of the topics,
under a name that no topic can have. The id tells a topic that was made anew from one that lost its oldest data.

A position that ends a micro-batch also says where the batch was cut for its tasks. Where cuts can be made changes with
time (an active segment's index is written little by little); a batch that is run again must be divided as before, for
those who know by a task's number what it has written.

A partition that is new enters a position at its earliest offset, and is read from there by the next micro-batch: so
every micro-batch has its bounds in the checkpoint, and one that is run again reads the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.names import TopicPartition
from ottla.records import kernel
from ottla.spark import offsets
from ottla.spark.offsets import Offsets
from ottla.spark.options import ReadOptions
from ottla.spark.read import plan
from ottla.spark.read.loss import report, report_lost
from ottla.spark.read.ranges import Split, between
from ottla.spark.transport.base import Block, Lost, Transport, Undecided
from ottla.spark.transport.open_transport import open_transport

TOPIC_IDS = "topic ids"
CUTS = "cut at"
_ALL_BYTES = 2**62


@dataclass(frozen=True)
class Position:
    """How far a query has come."""

    offsets: Offsets = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    cuts: dict[TopicPartition, list[int]] | None = field(default=None, compare=False)

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Position:
        found = dict(value or {})
        nested = found.pop(CUTS, None)
        cuts = None
        if nested is not None:
            cuts = {
                TopicPartition(t, int(p)): list(at) for t, each in nested.items() for p, at in each.items()
            }
        return cls(topic_ids=found.pop(TOPIC_IDS, {}), offsets=offsets.from_nested(found), cuts=cuts)

    def to_json(self) -> dict[str, Any]:
        nested: dict[str, Any] = dict(offsets.to_nested(self.offsets))
        if self.topic_ids:
            nested[TOPIC_IDS] = dict(sorted(self.topic_ids.items()))
        if self.cuts is not None:
            cuts: dict[str, dict[str, list[int]]] = {}
            for (topic, partition), at in sorted(self.cuts.items()):
                cuts.setdefault(topic, {})[str(partition)] = at
            nested[CUTS] = cuts
        return nested

    def is_other_topic(self, topic: str, topic_ids: Mapping[str, str]) -> bool:
        """Whether the topic of that name is not the one that this position is in."""
        known, now = self.topic_ids.get(topic), topic_ids.get(topic)
        return known is not None and now is not None and known != now


class StreamPlan:
    """Plans the micro-batches of one query."""

    def __init__(
        self,
        options: ReadOptions,
        transport: Transport | None = None,
        now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        self._options = options
        self._transport = transport or open_transport(options)
        self._now_ms = now_ms
        self._last_batch_ms = now_ms()
        self._target: Position | None = None

    def close(self) -> None:
        self._transport.close()

    def initial(self) -> Position:
        start = plan.starting_offsets(self._options, self._transport)
        return Position(start, self._ids(start))

    def stop_at_the_end_of_now(self) -> None:
        """From now on nothing newer than what is there at this moment is planned."""
        self._target = self.newest()

    def newest(self) -> Position:
        end = self._transport.latest(self._transport.partitions())
        return Position(end, self._ids(end))

    def next(self, start: Position, *, is_limited: bool = True) -> Position:
        """Where the micro-batch that starts at `start` ends; `start` itself if there is nothing to do (yet)."""
        now = self._target or self.newest()
        ends = self._survivors(start, now)
        if is_limited and not self._is_due(start.offsets, ends):
            return start
        if is_limited:
            ends = self._limited(start.offsets, ends)
        entered = self._entered(start, now)
        end = Position(ends | entered, now.topic_ids)
        if end != start:
            self._last_batch_ms = self._now_ms()
        return end

    def _survivors(self, start: Position, now: Position) -> Offsets:
        """The ends of the partitions that are still the same."""
        ends: Offsets = {}
        for partition, offset in sorted(start.offsets.items()):
            latest = now.offsets.get(partition)
            if start.is_other_topic(partition.topic, now.topic_ids):
                report(
                    self._options,
                    f"{partition}: the topic was deleted and made anew; what the old one had from offset {offset} on is"
                    " lost, and the new one is read from its beginning",
                )
            elif latest is None:
                report(
                    self._options,
                    f"{partition} is not there any more; what it had from offset {offset} on is lost",
                )
            elif latest < offset and self._has(partition, offset - 1):
                # A broker that has just started has not yet caught up with its own log.
                ends[partition] = offset
            elif latest < offset:
                report(
                    self._options,
                    f"{partition} ends at {latest}, before offset {offset} that was read already: it was cut",
                )
                ends[partition] = latest
            else:
                ends[partition] = latest
        return ends

    def _has(self, partition: TopicPartition, offset: int) -> bool:
        return any(
            found.to_offset > offset
            if isinstance(found, Undecided)
            else isinstance(found, Block)
            and found.rows[(found.count - 1) * kernel.ROW + kernel.LAST_OFFSET] >= offset
            for found in self._transport.read(partition, offset, offset + 1)
        )

    def _entered(self, start: Position, now: Position) -> Offsets:
        """Partitions that the start does not know, at their earliest offsets."""
        new = [
            partition
            for partition in now.offsets
            if partition not in start.offsets or start.is_other_topic(partition.topic, now.topic_ids)
        ]
        return self._transport.earliest(new) if new else {}

    def _is_due(self, start: Offsets, end: Offsets) -> bool:
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None:
            return True
        waited_ms = self._now_ms() - self._last_batch_ms
        return offsets.count(start, end) >= least or waited_ms >= self._options.max_trigger_delay_ms

    def _limited(self, start: Offsets, end: Offsets) -> Offsets:
        if self._options.max_offsets_per_trigger is not None:
            end = offsets.limit(start, end, self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            end = self._limit_bytes(start, end, self._options.max_bytes_per_trigger)
        return end

    def _limit_bytes(self, start: Offsets, end: Offsets, most: int) -> Offsets:
        """Each partition gets a share as large as its backlog's, up to the next place that an index knows."""
        behind = {tp: (start[tp], end[tp]) for tp in end if start[tp] < end[tp]}
        sizes = {
            tp: self._transport.marks(tp, *bounds, _ALL_BYTES)[-1].size_bytes for tp, bounds in behind.items()
        }
        total = sum(sizes.values())
        if total <= most:
            return end
        limited = dict(end)
        for partition, bounds in behind.items():
            share = max(1, sizes[partition] * most // total)
            limited[partition] = self._transport.marks(partition, *bounds, share)[1].offset
        return limited

    def cut(self, start: Position, end: Position) -> Position:
        """The end of the micro-batch [start, end), with the cuts between its tasks."""
        cuts: dict[TopicPartition, list[int]] = {}
        for split in self.splits(start, end):
            if split.start > split.origin:
                cuts.setdefault(split.partition, []).append(split.start)
        return replace(end, cuts=cuts)

    def splits(self, start: Position, end: Position) -> list[Split]:
        """What the tasks of the micro-batch [start, end) read."""
        wanted = {
            partition: offset
            for partition, offset in end.offsets.items()
            if offset > start.offsets.get(partition, offset)
            and not start.is_other_topic(partition.topic, end.topic_ids)
        }
        starts = self._after_losses({partition: start.offsets[partition] for partition in wanted}, wanted)
        if end.cuts is None:
            return plan.plan_splits(self._options, starts, wanted, self._transport)
        return [
            split
            for partition, last in sorted(wanted.items())
            for split in between(
                partition, [start.offsets[partition], *end.cuts.get(partition, ()), last], starts[partition]
            )
        ]

    def _after_losses(self, start: Offsets, end: Offsets) -> Offsets:
        """The starts, moved behind what is gone, with the exact ranges reported."""
        earliest = self._transport.earliest(start)
        found: Offsets = {}
        for partition, offset in start.items():
            first = earliest.get(partition, end[partition])
            if first > offset:
                report_lost(self._options, partition, Lost(offset, min(first, end[partition])))
            found[partition] = max(offset, first)
        return found

    def _ids(self, partitions: Mapping[TopicPartition, int]) -> dict[str, str]:
        return self._transport.topic_ids({partition.topic for partition in partitions})
