"""All that the group coordinator keeps in one partition of `__consumer_offsets`: groups, and their offsets."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from ottla.config import BrokerConfig
from ottla.coordinator.group import Group, GroupPhase
from ottla.coordinator.group_join import Joins
from ottla.coordinator.group_members import Members
from ottla.coordinator.group_offsets import Offsets, Place
from ottla.coordinator.group_records import CommittedOffset, GroupMetadata, GroupRecord, OffsetCommit
from ottla.coordinator.rebalances import Rebalances
from ottla.coordinator.result import Producer, Result, Shard
from ottla.errors import BrokerError, CodedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

_GROUP_ID_NOT_FOUND_SINCE = 9
_MINUTE_MS = 60_000

# What is to be committed: topic, its id if it is known, and per partition (number, offset, epoch, metadata).
Commits = Sequence[tuple[str, uuid.UUID | None, Sequence[tuple[int, int, int, str]]]]
# What became of it: per topic, error codes by partition.
Codes = dict[tuple[str, int], int]


class GroupState:
    """The groups whose ids belong to one partition. Commands are methods; each gives a Result."""

    def __init__(self, shard: Shard, config: BrokerConfig) -> None:
        self._shard = shard
        self._config = config
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self._rebalances = Rebalances(shard, config, self.groups)
        self._joins = Joins(shard, config, self.groups, self._rebalances)
        self._members = Members(self.groups, self._rebalances)
        self.join = self._joins.join
        self.sync = self._members.sync
        self.heartbeat = self._members.heartbeat
        self.leave = self._members.leave

    # -- what the runtime asks for

    def replay(self, record: GroupRecord, offset: int, producer_id: int) -> None:
        if isinstance(record, OffsetCommit):
            if record.value is not None and record.group not in self.groups:
                # A consumer that only keeps its offsets here has a group all the same.
                self.groups[record.group] = Group(record.group, record.value.commit_timestamp)
            self.offsets.replay(record, offset, producer_id)
            return
        known = self.groups.pop(record.group, None)
        if known is not None:
            known.cancel_timers()
        if record.value is not None:
            self.groups[record.group] = Group.restored(record.group, record.value)

    def replay_end_of_txn(self, producer_id: int, committed: bool, offset: int) -> None:
        self.offsets.end_txn(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> None:
        for group in self.groups.values():
            for member in group.members.values():
                self._rebalances.touch(group, member)
        self._plan_expiry()

    def unloaded(self, error: BrokerError) -> None:
        for group in self.groups.values():
            group.cancel_timers()
            for member in group.members.values():
                for reply in (member.join_reply, member.sync_reply):
                    if reply is not None:
                        reply(None, error)

    # -- offsets

    def commit(
        self, request: OffsetCommitRequest, version: int, commits: Commits, now_ms: int
    ) -> Result[GroupRecord]:
        """Write down how far a group is. The response is `Codes`."""
        generation = request.generation_id_or_member_epoch
        group = self.groups.get(request.group_id)
        if group is None:
            if generation >= 0:
                is_new = version >= _GROUP_ID_NOT_FOUND_SINCE
                raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
        else:
            group.check_commit(request.member_id, request.group_instance_id, generation, transactional=False)
            member = group.members.get(request.member_id)
            if member is not None:
                self._rebalances.touch(group, member)
        retention_ms = request.retention_time_ms
        expires = -1 if retention_ms == -1 else now_ms + retention_ms
        return self._commit(request.group_id, commits, now_ms, expires)

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, commits: Commits, now_ms: int
    ) -> Result[GroupRecord]:
        """The same as part of a transaction: it counts when that is committed."""
        group = self.groups.get(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                raise CodedError(ErrorCode.ILLEGAL_GENERATION)
        else:
            group.check_commit(
                request.member_id, request.group_instance_id, request.generation_id, transactional=True
            )
        result = self._commit(request.group_id, commits, now_ms, -1)
        result.producer = Producer(request.producer_id, request.producer_epoch)
        return result

    def _commit(self, group_id: str, commits: Commits, now_ms: int, expires: int) -> Result[GroupRecord]:
        codes: Codes = {}
        records: list[GroupRecord] = []
        max_size = self._config.offset_metadata_max_bytes
        for topic, topic_id, partitions in commits:
            for partition, offset, epoch, metadata in partitions:
                if len(metadata) > max_size:
                    codes[topic, partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    continue
                codes[topic, partition] = ErrorCode.NONE
                value = CommittedOffset(offset, epoch, metadata, now_ms, expires, topic_id)
                records.append(OffsetCommit(group_id, topic, partition, value))
        return Result(codes, records)

    def fetch(
        self, group_id: str, place: Place, topic_id: uuid.UUID | None, *, stable: bool
    ) -> CommittedOffset | ErrorCode | None:
        """What is committed, if anything; UNSTABLE_OFFSET_COMMIT where a transaction may change it."""
        if group_id not in self.groups:
            return None
        if stable and self.offsets.is_unstable(group_id, place):
            return ErrorCode.UNSTABLE_OFFSET_COMMIT
        found = self.offsets.get(group_id, place)
        if found is not None and topic_id and found.topic_id and found.topic_id != topic_id:
            return None  # it is of an earlier topic of that name
        return found

    def delete_offsets(self, group_id: str, places: Iterable[Place], now_ms: int) -> Result[GroupRecord]:
        """Forget offsets of topics that the group is not subscribed to. The response is `Codes`."""
        group = self.groups.get(group_id)
        if group is None:
            raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.phase is not GroupPhase.EMPTY and not group.is_consumers:
            raise CodedError(ErrorCode.NON_EMPTY_GROUP)
        codes: Codes = {}
        records: list[GroupRecord] = []
        known = self.offsets.places(group_id)
        for place in places:
            if group.is_subscribed(place.topic):
                codes[place] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            codes[place] = ErrorCode.NONE
            if place in known:
                records.append(OffsetCommit(group_id, place.topic, place.partition, None))
        return Result(codes, records)

    # -- whole groups

    def find(self, group_id: str) -> Group | None:
        return self.groups.get(group_id)

    def delete(self, group_id: str, now_ms: int) -> Result[GroupRecord]:
        """Delete an empty group and its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.phase is not GroupPhase.EMPTY:
            raise CodedError(ErrorCode.NON_EMPTY_GROUP)
        records: list[GroupRecord] = [
            OffsetCommit(group_id, place.topic, place.partition, None)
            for place in sorted(self.offsets.places(group_id))
        ]
        records.append(GroupMetadata(group_id, None))
        return Result(None, records, whole=False)

    # -- what goes by itself

    def _plan_expiry(self) -> None:
        def expire(state: GroupState, now_ms: int) -> Result[GroupRecord]:
            self._plan_expiry()
            return self.expire(now_ms)

        self._shard.call_later(self._config.offsets_retention_check_interval_ms, expire)

    def expire(self, now_ms: int) -> Result[GroupRecord]:
        """Forget offsets that nobody has needed for long, and groups that have nothing left."""
        records: list[GroupRecord] = []
        for group in list(self.groups.values()):
            expired = self._expired(group, now_ms)
            records += (OffsetCommit(group.group_id, *place, None) for place in expired)
            left = self.offsets.places(group.group_id).difference(expired)
            if group.phase is GroupPhase.EMPTY and not left and not group.pending:
                records.append(GroupMetadata(group.group_id, None))
        return Result(None, records, whole=False)

    def _expired(self, group: Group, now_ms: int) -> list[Place]:
        is_empty = group.phase is GroupPhase.EMPTY
        is_known = group.phase is GroupPhase.STABLE and group.is_consumers and group.topics is not None
        if group.protocol_type is not None and not is_empty and not is_known:
            return []
        since_empty = group.protocol_type is not None and is_empty and group.timestamp >= 0
        retention_ms = self._config.offsets_retention_minutes * _MINUTE_MS
        expired = []
        for place, commit in self.offsets.of(group.group_id).items():
            if group.is_subscribed(place.topic) or self.offsets.is_unstable(group.group_id, place):
                continue
            base_ms = group.timestamp if since_empty else commit.commit_timestamp
            if commit.expire_timestamp >= 0:
                is_over = now_ms >= commit.expire_timestamp
            else:
                is_over = now_ms - base_ms >= retention_ms
            if is_over:
                expired.append(place)
        return expired

    def forget_topics(self, topics: frozenset[str], now_ms: int) -> Result[GroupRecord]:
        """Topics were deleted: nobody will ask for offsets in them."""
        records: list[GroupRecord] = [
            OffsetCommit(group_id, place.topic, place.partition, None)
            for group_id in self.groups
            for place in sorted(self.offsets.places(group_id))
            if place.topic in topics
        ]
        return Result(None, records, whole=False)
