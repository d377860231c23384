"""The committed offsets of one shard's groups, and those of transactions that have not ended.

An offset that a transaction brings counts when it is committed, unless a later commit has come meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.coordinator.commit_kernel import CommittedOffset, store_commits
from ottla.coordinator.group_records import OffsetCommit, OffsetCommits


class Place(NamedTuple):
    """A partition, as a group commits it."""

    topic: str
    partition: int


class Offsets:
    """Changed by replay only."""

    def __init__(self) -> None:
        # By group, topic and partition.
        self._committed: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending: dict[int, dict[tuple[str, Place], CommittedOffset]] = {}  # by producer id
        self._open: dict[str, dict[Place, set[int]]] = {}  # by group: the producers with something pending

    # -- questions

    def of(self, group: str) -> dict[Place, CommittedOffset]:
        return {
            Place(topic, partition): stored
            for topic, partitions in self._committed.get(group, {}).items()
            for partition, stored in partitions.items()
        }

    def get(self, group: str, place: Place) -> CommittedOffset | None:
        return self._committed.get(group, {}).get(place.topic, {}).get(place.partition)

    def is_unstable(self, group: str, place: Place) -> bool:
        """Whether a transaction that has not ended is about to change it."""
        return place in self._open.get(group, {})

    def places(self, group: str) -> set[Place]:
        """All that is known of a group, pending or not."""
        return {*self.of(group), *self._open.get(group, {})}

    def groups(self) -> Iterator[str]:
        yield from self._committed

    def pending(self) -> dict[int, dict[tuple[str, Place], CommittedOffset]]:
        return {producer_id: dict(entries) for producer_id, entries in self._pending.items()}

    # -- replay

    def replay(self, record: OffsetCommit, written_at: int, producer_id: int) -> None:
        group, value = record.group, record.value
        place = Place(record.topic, record.partition)
        if value is None:
            self._remove(group, place)
            return
        value.written_at = written_at
        if producer_id < 0:
            self._of_topic(group, place.topic)[place.partition] = value
        else:
            self._pending.setdefault(producer_id, {})[group, place] = value
            self._open.setdefault(group, {}).setdefault(place, set()).add(producer_id)

    def replay_many(self, commits: OffsetCommits, written_at: int, producer_id: int) -> None:
        if producer_id >= 0:
            for offset, record in enumerate(commits.singly(), written_at):
                self.replay(record, offset, producer_id)
            return
        store_commits(
            self._of_topic(commits.group, commits.topic),
            commits.entries,
            written_at,
            commits.commit_timestamp,
            commits.expire_timestamp,
            commits.topic_id,
        )

    def end_txn(self, producer_id: int, *, committed: bool) -> None:
        for (group, place), stored in self._pending.pop(producer_id, {}).items():
            self._close(group, place, producer_id)
            known = self.get(group, place)
            if committed and (known is None or known.written_at < stored.written_at):
                self._of_topic(group, place.topic)[place.partition] = stored

    def _of_topic(self, group: str, topic: str) -> dict[int, CommittedOffset]:
        """What is stored of a topic; there is a place for it now, if there was none."""
        topics = self._committed.get(group)
        if topics is None:
            topics = self._committed[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        return partitions

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
