"""What clients do with committed offsets: commit them, alone or in a transaction, read them, and forget them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.config import BrokerConfig
from ottla.coordinator.classic.group import Group
from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.classic.rebalances import Rebalances
from ottla.coordinator.consumer.group import ConsumerGroup
from ottla.coordinator.offsets.committed import CommittedOffsets
from ottla.coordinator.offsets.room import Room
from ottla.coordinator.result import CommandResult, GroupResult, Producer
from ottla.errors import CodedError
from ottla.internal_topics.commit_kernel import CommittedOffset, longest_metadata
from ottla.internal_topics.group_records import GroupRecord, OffsetCommit, OffsetCommits
from ottla.names import TopicPartition
from ottla.protocol.commit_topic import Entry
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

_GROUP_ID_NOT_FOUND_SINCE = 9

# What is to be committed: topics, their ids if they are known, and what the request says about their partitions.
Commits = list[tuple[str, uuid.UUID | None, list[Entry]]]
# What became of it: the error codes of partitions where something is wrong.
Codes = dict[tuple[str, int], int]


@dataclass(eq=False)
class OffsetCommands:
    """Those of a shard's commands that are about offsets."""

    _config: BrokerConfig
    _groups: dict[str, Group]
    _consumer_groups: dict[str, ConsumerGroup]
    _offsets: CommittedOffsets
    _rebalances: Rebalances
    _room: Room

    def _find(self, group_id: str) -> Group | ConsumerGroup | None:
        return self._groups.get(group_id) or self._consumer_groups.get(group_id)

    def commit(
        self, request: OffsetCommitRequest, version: int, commits: Commits, now_ms: int
    ) -> GroupResult:
        """Write down how far a group is. The response is `Codes`."""
        generation = request.generation_id_or_member_epoch
        group = self._find(request.group_id)
        if group is None:
            if generation >= 0:
                is_new = version >= _GROUP_ID_NOT_FOUND_SINCE
                raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
            self._room.check_group(request.group_id)
        else:
            group.check_commit(
                request.member_id, request.group_instance_id, generation, transactional=False, version=version
            )
            if isinstance(group, Group) and request.member_id in group.members:
                self._rebalances.touch(group, group.members[request.member_id])
        retention_ms = request.retention_time_ms
        expires = -1 if retention_ms == -1 else now_ms + retention_ms
        return self._commit(request.group_id, commits, now_ms, expires)

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, commits: Commits, now_ms: int
    ) -> GroupResult:
        """The same as part of a transaction: it counts when that is committed."""
        group = self._find(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                raise CodedError(ErrorCode.ILLEGAL_GENERATION)
            self._room.check_group(request.group_id)
        else:
            try:
                group.check_commit(
                    request.member_id,
                    request.group_instance_id,
                    request.generation_id,
                    transactional=True,
                    version=0,
                )
            except CodedError as error:
                if error.code == ErrorCode.STALE_MEMBER_EPOCH:
                    raise CodedError(ErrorCode.ILLEGAL_GENERATION) from error
                raise
        result = self._commit(request.group_id, commits, now_ms, -1)
        result.producer = Producer(request.producer_id, request.producer_epoch)
        return result

    def _commit(self, group_id: str, commits: Commits, now_ms: int, expires: int) -> GroupResult:
        if self._room.is_full_of_offsets and not self._offsets.has_all(
            group_id, [(topic, entries) for topic, _, entries in commits]
        ):
            message = "The broker keeps as many committed offsets as it may (ottla.max.committed.offsets)."
            raise CodedError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, message)
        codes: Codes = {}
        records: list[GroupRecord] = []
        max_size = self._config.offset_metadata_max_bytes
        for topic, topic_id, entries in commits:
            if longest_metadata(entries) > max_size:
                too_long = ErrorCode.OFFSET_METADATA_TOO_LARGE
                codes.update({(topic, entry[0]): too_long for entry in entries if len(entry[3]) > max_size})
                entries = [entry for entry in entries if len(entry[3]) <= max_size]
            if entries:
                records.append(OffsetCommits(group_id, topic, topic_id, entries, now_ms, expires))
        return CommandResult(codes, records)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """CodedError unless such a member may read offsets; of classic groups everybody may."""
        group = self._consumer_groups.get(group_id)
        if group is not None:
            group.check_fetch(member_id, epoch)

    def fetch(
        self, group_id: str, place: TopicPartition, topic_id: uuid.UUID | None, *, stable: bool
    ) -> CommittedOffset | ErrorCode | None:
        """What is committed, if anything; UNSTABLE_OFFSET_COMMIT where a transaction may change it."""
        if self._find(group_id) is None:
            return None
        if stable and self._offsets.is_unstable(group_id, place):
            return ErrorCode.UNSTABLE_OFFSET_COMMIT
        found = self._offsets.get(group_id, place)
        if found is not None and topic_id and found.topic_id and found.topic_id != topic_id:
            return None  # committed for an earlier topic of the same name
        return found

    def delete_offsets(self, group_id: str, places: Iterable[TopicPartition], now_ms: int) -> GroupResult:
        """Forget offsets of topics that the group is not subscribed to. The response is `Codes`."""
        group = self._find(group_id)
        if group is None:
            raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(group, Group) and group.phase is not GroupPhase.EMPTY and not group.is_consumers:
            raise CodedError(ErrorCode.NON_EMPTY_GROUP)
        codes: Codes = {}
        records: list[GroupRecord] = []
        known = self._offsets.places(group_id)
        for place in places:
            if group.is_subscribed(place.topic):
                codes[place] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            codes[place] = ErrorCode.NONE
            if place in known:
                records.append(OffsetCommit(group_id, place.topic, place.partition, None))
        return CommandResult(codes, records)
