"""What `ottla consume` does: find out where to read from and to, and read."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.cli.client.connection import Kafka, Trouble, complain, explain, fail, next_step, open_client
from ottla.cli.client.consume_output import Line
from ottla.cli.client.offsets import Kind, OffsetSpec, bounds_of, resolve
from ottla.cli.client.progress import record_counter
from ottla.cli.values import MAX_OFFSET

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_BATCH = 10_000
_POLL_S = 0.2
_SETTINGS = {
    # The library cannot do without a name, but no group is joined and nothing committed.
    "group.id": "ottla",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "check.crcs": True,
    # With the default of a second, the client sleeps most of the time once it has read ahead enough.
    "fetch.queue.backoff.ms": 5,
}
_READ_WAIT_MS = 20  # what is asked for is there already; only empty partitions would be waited for
_FOLLOW_WAIT_MS = 500


@dataclass(frozen=True, slots=True)
class Query:
    topic: str
    partitions: Sequence[int] | None
    begin: OffsetSpec
    end: OffsetSpec
    follow: bool
    limit: int | None
    committed: bool


@dataclass(slots=True)
class Ranges:
    """The offsets wanted of each partition that is not read to its end yet."""

    starts: dict[int, int]
    ends: dict[int, int]


def run(kafka: Kafka, query: Query, line: Line, *, quiet: bool) -> None:
    from confluent_kafka import Consumer

    ranges, positions = _ranges(kafka, query)
    if not positions:
        return
    trouble = Trouble()
    config = {
        **_SETTINGS,
        "isolation.level": "read_committed" if query.committed else "read_uncommitted",
        "fetch.wait.max.ms": _FOLLOW_WAIT_MS if query.follow else _READ_WAIT_MS,
        **kafka.config,
        "error_cb": trouble,
    }
    consumer: Consumer = open_client(Consumer, config)
    shown = not quiet and not sys.stdout.isatty()
    with closing(consumer), record_counter("read", shown=shown) as count:
        consumer.assign(positions)
        reader = _Reader(kafka, query, consumer, ranges, trouble)
        out = sys.stdout.buffer
        while not reader.is_done:
            messages = reader.read()
            if messages:
                out.write(b"".join([line(message) for message in messages]))
                count(len(messages))
            elif _nobody_reads():
                raise BrokenPipeError
            out.flush()


def _ranges(kafka: Kafka, query: Query) -> tuple[Ranges, list[TopicPartition]]:
    """What to read of each partition, and where to begin. A partition with nothing to read is left out."""
    from confluent_kafka import TopicPartition

    names = [(query.topic, partition) for partition in kafka.partitions(query.topic, query.partitions)]
    bounds = bounds_of(kafka, names, committed=query.committed)
    starts = resolve(kafka, query.begin, bounds)
    ends = resolve(kafka, query.end, bounds)
    ranges, positions = Ranges({}, {}), []
    for name, bound in bounds.items():
        _, partition = name
        end = MAX_OFFSET if query.follow else min(ends[name], bound.latest)
        start = max(starts[name], bound.earliest)
        if query.begin.kind is Kind.OFFSET and starts[name] < bound.earliest:
            complain(f"{query.topic}-{partition} begins at offset {bound.earliest}")
        if start < end:
            ranges.starts[partition], ranges.ends[partition] = start, end
            positions.append(TopicPartition(query.topic, partition, min(start, bound.latest)))
    return ranges, positions


class _Reader:
    """Takes batches from a consumer, and knows which of their records are wanted and when all are there."""

    def __init__(
        self, kafka: Kafka, query: Query, consumer: Consumer, ranges: Ranges, trouble: Trouble
    ) -> None:
        self._kafka = kafka
        self._query = query
        self._consumer = consumer
        self._ranges = ranges
        self._trouble = trouble
        self._left = MAX_OFFSET if query.limit is None else query.limit
        self._heard_at = time.monotonic()
        self._told = False

    @property
    def is_done(self) -> bool:
        return self._left <= 0 or not self._ranges.ends

    def read(self) -> list[Message]:
        """The wanted records among the next ones; none if nothing came for a moment."""
        first = self._consumer.poll(_POLL_S)
        if first is None:
            self._check_silence()
            return []
        self._heard_at, self._told, self._trouble.is_down = time.monotonic(), False, False
        wanted = self._wanted([first, *self._consumer.consume(_BATCH, 0)])
        del wanted[self._left :]
        self._left -= len(wanted)
        return wanted

    def _wanted(self, messages: list[Message]) -> list[Message]:
        starts, ends = self._ranges.starts, self._ranges.ends
        wanted = []
        for message in messages:
            if (error := message.error()) is not None:
                self._handle(error, message.partition())
                continue
            partition: int = message.partition() or 0
            offset: int = message.offset() or 0
            end = ends.get(partition)
            if end is not None and offset >= starts[partition]:
                if offset < end:
                    wanted.append(message)
                if offset >= end - 1:
                    self._finish(partition)
        return wanted

    def _handle(self, error: KafkaError, partition: int | None) -> None:
        where = self._query.topic if partition is None else f"{self._query.topic}-{partition}"
        if error.name() == "_PARTITION_EOF":
            if not self._query.follow:
                self._finish(partition or 0)
        elif error.name() == "_AUTO_OFFSET_RESET":
            fail(f"{where}: records were deleted before they were read", "begin again with --from earliest")
        elif error.name() != "GROUP_AUTHORIZATION_FAILED":  # the group is only a name
            fail(f"{where}: {explain(error)}", next_step(error))

    def _finish(self, partition: int) -> None:
        from confluent_kafka import TopicPartition

        if self._ranges.ends.pop(partition, None) is not None and self._ranges.ends:
            self._consumer.pause([TopicPartition(self._query.topic, partition)])

    def _check_silence(self) -> None:
        """To follow is to wait; but what is known to be there must come."""
        if self._trouble.hopeless:
            fail(explain(self._trouble.hopeless), next_step(self._trouble.hopeless))
        why = f": {self._trouble}" if self._trouble.last else ""
        if not self._query.follow and time.monotonic() - self._heard_at > self._kafka.timeout_s:
            fail(f"nothing came for {self._kafka.timeout_s:g} s{why}", "is the broker still running?")
        if self._trouble.is_down and not self._told:
            self._told = True
            complain(f"the broker is gone{why}", "still trying; Ctrl-C ends")


def _nobody_reads() -> bool:
    """Whether the reader of our output is gone, which else shows only when the next record comes."""
    poll = select.poll()
    with suppress(OSError):  # not every stream is a file
        poll.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
