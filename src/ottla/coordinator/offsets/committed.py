"""The committed offsets of one shard's groups, and those of transactions that have not ended.

An offset that a transaction brings counts when it is committed, unless a later commit has come meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ottla.internal_topics.commit_kernel import CommittedOffset, longest_metadata, store_commits
from ottla.internal_topics.group_records import OffsetCommit, OffsetCommits
from ottla.names import TopicPartition
from ottla.protocol.commit_topic import Entry

TEXT_BYTES: Final = 250  # of the text of a commit count as one commit more


class Total:
    """How much all shards of a broker keep, in offsets."""

    def __init__(self) -> None:
        self.weight = 0


class CommittedOffsets:
    """Changed by replay only."""

    def __init__(self, total: Total) -> None:
        self._total = total
        self._weight = 0  # of these
        self._wordy: set[str] = set()  # groups with long texts among their commits
        # By group, topic and partition.
        self._committed: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending: dict[int, dict[tuple[str, TopicPartition], CommittedOffset]] = {}  # by producer id
        self._open: dict[
            str, dict[TopicPartition, set[int]]
        ] = {}  # by group: the producers with something pending

    # -- questions

    def of(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        return {
            TopicPartition(topic, partition): stored
            for topic, partitions in self._committed.get(group, {}).items()
            for partition, stored in partitions.items()
        }

    def get(self, group: str, place: TopicPartition) -> CommittedOffset | None:
        return self._committed.get(group, {}).get(place.topic, {}).get(place.partition)

    def is_unstable(self, group: str, place: TopicPartition) -> bool:
        """Whether a transaction that has not ended is about to change it."""
        return place in self._open.get(group, {})

    def places(self, group: str) -> set[TopicPartition]:
        """All that is known of a group, pending or not."""
        return {*self.of(group), *self._open.get(group, {})}

    def of_topics(self, topics: frozenset[str]) -> list[tuple[str, TopicPartition]]:
        """All groups' commits of some topics, pending or not."""
        if not topics:
            return []
        found = {
            (group, TopicPartition(topic, partition))
            for group, known in self._committed.items()
            for topic in topics.intersection(known)
            for partition in known[topic]
        }
        found.update(
            (group, place)
            for group, places in self._open.items()
            for place in places
            if place.topic in topics
        )
        return sorted(found)

    def has_all(self, group: str, topics: Iterable[tuple[str, list[Entry]]]) -> bool:
        """Whether there is a commit already for each of these entries."""
        known = self._committed.get(group, {})
        return all(entry[0] in known.get(topic, {}) for topic, entries in topics for entry in entries)

    def groups(self) -> Iterator[str]:
        yield from self._committed

    def pending(self) -> dict[int, dict[tuple[str, TopicPartition], CommittedOffset]]:
        return {producer_id: dict(entries) for producer_id, entries in self._pending.items()}

    # -- replay

    def replay(self, record: OffsetCommit, written_at: int, producer_id: int) -> None:
        group, value = record.group, record.value
        place = TopicPartition(record.topic, record.partition)
        if value is None:
            self._remove(group, place)
            return
        value.written_at = written_at
        if producer_id < 0:
            self._store(group, place, value)
        else:
            pending = self._pending.setdefault(producer_id, {})
            self._weigh(group, pending.get((group, place)), value)
            pending[group, place] = value
            self._open.setdefault(group, {}).setdefault(place, set()).add(producer_id)

    def replay_many(self, commits: OffsetCommits, written_at: int, producer_id: int) -> None:
        if producer_id >= 0:
            for offset, record in enumerate(commits.singly(), written_at):
                self.replay(record, offset, producer_id)
            return
        if commits.group in self._wordy or longest_metadata(commits.entries) >= TEXT_BYTES:
            for offset, record in enumerate(commits.singly(), written_at):
                self.replay(record, offset, producer_id)
            return
        known = self._of_topic(commits.group, commits.topic)
        count = len(known)
        store_commits(
            known,
            commits.entries,
            written_at,
            commits.commit_timestamp,
            commits.expire_timestamp,
            commits.topic_id,
        )
        if len(known) != count:
            self._add(len(known) - count)

    def end_txn(self, producer_id: int, *, committed: bool) -> None:
        for (group, place), stored in self._pending.pop(producer_id, {}).items():
            self._close(group, place, producer_id)
            self._weigh(group, stored, None)
            known = self.get(group, place)
            if committed and (known is None or known.written_at < stored.written_at):
                self._store(group, place, stored)

    def _store(self, group: str, place: TopicPartition, value: CommittedOffset) -> None:
        known = self._of_topic(group, place.topic)
        self._weigh(group, known.get(place.partition), value)
        known[place.partition] = value

    # -- the weight of what is kept

    def _weigh(self, group: str, old: CommittedOffset | None, new: CommittedOffset | None) -> None:
        weight = 0
        if old is not None:
            weight -= 1 + len(old.metadata) // TEXT_BYTES
        if new is not None:
            long_texts = len(new.metadata) // TEXT_BYTES
            weight += 1 + long_texts
            if long_texts:
                self._wordy.add(group)
        if weight:
            self._add(weight)

    def _add(self, weight: int) -> None:
        self._weight += weight
        self._total.weight += weight

    def unload(self) -> None:
        """These are no longer this broker's."""
        self._add(-self._weight)

    def _of_topic(self, group: str, topic: str) -> dict[int, CommittedOffset]:
        """What is stored of a topic; there is a place for it now, if there was none."""
        topics = self._committed.get(group)
        if topics is None:
            topics = self._committed[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        return partitions

    def _remove(self, group: str, place: TopicPartition) -> None:
        topics = self._committed.get(group, {})
        partitions = topics.get(place.topic, {})
        old = partitions.pop(place.partition, None)
        self._weigh(group, old, None)
        if old is not None and not partitions:
            del topics[place.topic]
            if not topics:
                del self._committed[group]
                self._wordy.discard(group)
        for producer_id in list(self._open.get(group, {}).get(place, ())):
            self._weigh(group, self._pending[producer_id].pop((group, place), None), None)
            if not self._pending[producer_id]:
                del self._pending[producer_id]
            self._close(group, place, producer_id)

    def _close(self, group: str, place: TopicPartition, producer_id: int) -> None:
        places = self._open[group]
        producers = places[place]
        producers.discard(producer_id)
        if not producers:
            del places[place]
            if not places:
                del self._open[group]
