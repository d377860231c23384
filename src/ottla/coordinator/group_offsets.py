"""The committed offsets of one shard's groups, and those of transactions that have not ended.

An offset that a transaction brings counts when it is committed, unless a later commit has come meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.coordinator.group_records import CommittedOffset, OffsetCommit


class Place(NamedTuple):
    """A partition, as a group commits it."""

    topic: str
    partition: int


class _Stored:
    """Never changed."""

    __slots__ = ("value", "written_at")

    def __init__(self, value: CommittedOffset, written_at: int) -> None:
        self.value = value
        self.written_at = (
            written_at  # an offset in the internal topic: says which of two commits is the later one
        )


class Offsets:
    """Changed by replay only."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, dict[int, _Stored]]] = {}  # by group, topic and partition
        self._pending: dict[int, dict[tuple[str, Place], _Stored]] = {}  # by producer id
        self._open: dict[str, dict[Place, set[int]]] = {}  # by group: the producers with something pending

    # -- questions

    def of(self, group: str) -> dict[Place, CommittedOffset]:
        return {
            Place(topic, partition): stored.value
            for topic, partitions in self._committed.get(group, {}).items()
            for partition, stored in partitions.items()
        }

    def get(self, group: str, place: Place) -> CommittedOffset | None:
        stored = self._find(group, place)
        return None if stored is None else stored.value

    def is_unstable(self, group: str, place: Place) -> bool:
        """Whether a transaction that has not ended is about to change it."""
        return place in self._open.get(group, {})

    def places(self, group: str) -> set[Place]:
        """All that is known of a group, pending or not."""
        return {*self.of(group), *self._open.get(group, {})}

    def groups(self) -> Iterator[str]:
        yield from self._committed

    def pending(self) -> dict[int, dict[tuple[str, Place], CommittedOffset]]:
        return {
            producer: {key: stored.value for key, stored in entries.items()}
            for producer, entries in self._pending.items()
        }

    def _find(self, group: str, place: Place) -> _Stored | None:
        return self._committed.get(group, {}).get(place.topic, {}).get(place.partition)

    # -- replay

    def replay(self, record: OffsetCommit, written_at: int, producer_id: int) -> None:
        group, value = record.group, record.value
        if value is None:
            self._remove(group, Place(record.topic, record.partition))
        elif producer_id < 0:
            self._put(group, record.topic, record.partition, _Stored(value, written_at))
        else:
            place = Place(record.topic, record.partition)
            self._pending.setdefault(producer_id, {})[group, place] = _Stored(value, written_at)
            self._open.setdefault(group, {}).setdefault(place, set()).add(producer_id)

    def end_txn(self, producer_id: int, *, committed: bool) -> None:
        for (group, place), stored in self._pending.pop(producer_id, {}).items():
            self._close(group, place, producer_id)
            known = self._find(group, place)
            if committed and (known is None or known.written_at < stored.written_at):
                self._put(group, place.topic, place.partition, stored)

    def _put(self, group: str, topic: str, partition: int, stored: _Stored) -> None:
        topics = self._committed.get(group)
        if topics is None:
            topics = self._committed[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        partitions[partition] = stored

    def _remove(self, group: str, place: Place) -> None:
        topics = self._committed.get(group, {})
        partitions = topics.get(place.topic, {})
        if partitions.pop(place.partition, None) is not None and not partitions:
            del topics[place.topic]
            if not topics:
                del self._committed[group]
        for producer_id in list(self._open.get(group, {}).get(place, ())):
            self._pending[producer_id].pop((group, place), None)
            if not self._pending[producer_id]:
                del self._pending[producer_id]
            self._close(group, place, producer_id)

    def _close(self, group: str, place: Place, producer_id: int) -> None:
        places = self._open[group]
        producers = places[place]
        producers.discard(producer_id)
        if not producers:
            del places[place]
            if not places:
                del self._open[group]
