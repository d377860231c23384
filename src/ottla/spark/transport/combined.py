"""Both transports at once: the brokers say what there is, segment files give it, and only the tail is fetched.

Below the high watermark in a directory's checkpoint, every replica has the same. What lies behind it, and whatever is
not on this machine's disk (any more), comes from the brokers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from ottla.names import TopicPartition
from ottla.records import kernel
from ottla.spark.offsets import Offsets
from ottla.spark.transport.base import BadBytes, Block, Lost, Mark, Transport, Undecided
from ottla.spark.transport.files import FileTransport


class CombinedTransport:
    """Files as far as they go, then brokers."""

    def __init__(self, files: FileTransport, brokers: Transport) -> None:
        self._files = files
        self._brokers = brokers

    def close(self) -> None:
        self._files.close()
        self._brokers.close()

    def partitions(self) -> list[TopicPartition]:
        return self._brokers.partitions()

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return self._brokers.topic_ids(topics)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._brokers.earliest(partitions)

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._brokers.latest(partitions)

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return self._brokers.at_times(times_ms)

    def marks(self, partition: TopicPartition, start: int, end: int, step_bytes: int) -> list[Mark]:
        files_end = min(end, self._files_end(partition))
        if files_end <= start:
            return self._brokers.marks(partition, start, end, step_bytes)
        marks = self._files.marks(partition, start, files_end, step_bytes)
        if files_end < end:
            tail = self._brokers.marks(partition, files_end, end, step_bytes)
            passed = marks[-1].size_bytes
            marks += [Mark(mark.offset, passed + mark.size_bytes) for mark in tail[1:]]
        return marks

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Block | BadBytes | Lost]:
        files_end = min(end, self._files_end(partition))
        at = start
        if start < files_end:
            at = files_end
            for found in _only(self._files.read(partition, start, files_end), start, files_end, end):
                if isinstance(found, (Lost, Undecided)):  # perhaps only here
                    at = max(start, found.from_offset)
                    break
                yield found
        if at < end:
            yield from _only(self._brokers.read(partition, at, end), at, end, end)

    def _files_end(self, partition: TopicPartition) -> int:
        """How far the files can be read; 0 where there are none, or those of another topic of that name."""
        topic = partition.topic
        mine, theirs = self._files.topic_ids([topic]).get(topic), self._brokers.topic_ids([topic]).get(topic)
        if mine is not None and theirs is not None and mine != theirs:
            return 0
        return self._files.readable_end(partition) or 0


def _only(
    found: Iterable[Block | BadBytes | Lost], start: int, stop: int, end: int
) -> Iterator[Block | BadBytes | Lost]:
    """Without the batches that end before `start`, or at `stop` and later: the other transport has them.

    Transports give batches around those that are wanted; at the `end` of the read that does no harm.
    """
    for each in found:
        if not isinstance(each, Block):
            if each.to_offset > start and each.from_offset < stop:
                yield each
            continue
        last_offsets = each.rows[kernel.LAST_OFFSET : each.count * kernel.ROW : kernel.ROW]
        first = bisect_left(last_offsets, start)
        behind = bisect_left(last_offsets, stop) if stop < end else each.count
        if (first, behind) == (0, each.count):
            yield each
        elif first < behind:
            yield each.part(first, behind)
