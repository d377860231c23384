"""All that the group coordinator keeps in one partition of `__consumer_offsets`: groups, and their offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ottla.cluster.image import ClusterImage
from ottla.config import BrokerConfig, GroupConfig
from ottla.coordinator.classic.group import Group
from ottla.coordinator.classic.join import Joining, Joins
from ottla.coordinator.classic.members import Members
from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.classic.rebalances import Rebalances
from ottla.coordinator.consumer.classic_members import ClassicMembers
from ottla.coordinator.consumer.group import ConsumerGroup, ConsumerPhase
from ottla.coordinator.consumer.heartbeats import ConsumerHeartbeats
from ottla.coordinator.consumer.member_updates import MemberUpdates
from ottla.coordinator.consumer.members import ConsumerMembers
from ottla.coordinator.consumer.migration import Migration
from ottla.coordinator.consumer.pattern_resolver import PatternResolver
from ottla.coordinator.consumer.target_assignments import TargetAssignments
from ottla.coordinator.consumer.topic_hash import TopicHashes
from ottla.coordinator.groups.offset_commands import OffsetCommands
from ottla.coordinator.groups.upkeep import Upkeep, tombstones_of
from ottla.coordinator.offsets.committed import CommittedOffsets
from ottla.coordinator.offsets.room import Room
from ottla.coordinator.result import CommandResult, GroupResult, Reply, Shard
from ottla.errors import BrokerError, CodedError
from ottla.internal_topics.consumer_group_records import GroupEpoch
from ottla.internal_topics.group_records import (
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    OffsetCommits,
    SingleRecord,
)
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest

_SESSIONS_AT_ONCE = 300


class GroupState:
    """The groups whose ids belong to one partition. Commands are methods; each gives a CommandResult."""

    def __init__(
        self, shard: Shard, config: BrokerConfig, image: Callable[[], ClusterImage], room: Room
    ) -> None:
        self._shard = shard
        self._config = config
        self._image = image
        self._room = room
        self.groups: dict[str, Group] = {}  # classic ones
        self.consumer_groups: dict[str, ConsumerGroup] = {}  # the others; no id is in both
        self.offsets = CommittedOffsets(room.offsets)
        room.add(self.groups, self.consumer_groups)
        self._rebalances = Rebalances(shard, config)
        self._joins = Joins(shard, config, self.groups, self._rebalances, room)
        self._members = Members(self.groups, self._rebalances)
        self._upkeep = Upkeep(shard, config, self.groups, self.consumer_groups, self.offsets)
        commands = OffsetCommands(
            config, self.groups, self.consumer_groups, self.offsets, self._rebalances, room
        )
        self.commit = commands.commit
        self.txn_offset_commit = commands.txn_offset_commit
        self.check_fetch = commands.check_fetch
        self.fetch = commands.fetch
        self.delete_offsets = commands.delete_offsets
        self._make_consumer_parts()

    def _make_consumer_parts(self) -> None:
        shard, config, image = self._shard, self._config, self._image
        hashes = TopicHashes()
        self._patterns = PatternResolver(
            shard, config.group_consumer_regex_refresh_interval_ms, image, hashes, self.consumer_groups
        )
        targets = TargetAssignments(shard, config.group_consumer_assignors[0], image, self.consumer_groups)
        updates = MemberUpdates(targets, image, hashes, self._patterns)
        migration = Migration(config, image, hashes, self.groups, self.consumer_groups, self._rebalances)
        self._consumers = ConsumerMembers(
            shard,
            lambda group_id: GroupConfig.of(image().group_configs.get(group_id, {}), config),
            self.consumer_groups,
            updates,
            migration,
            self._rebalances,
        )
        self._classic_members = ClassicMembers(
            config, image, self._consumers, updates, migration, self._rebalances
        )
        self.beat = ConsumerHeartbeats(
            config, self.groups, self.consumer_groups, self._consumers, updates, migration, self._room
        ).beat

    # -- what the runtime asks for

    def replay(self, records: Sequence[GroupRecord], first_offset: int, producer_id: int) -> None:
        offset = first_offset
        for record in records:
            if isinstance(record, OffsetCommits):
                self._ensure_group(record.group, record.commit_timestamp)
                self.offsets.replay_many(record, offset, producer_id)
                offset += len(record.entries)
            else:
                self._replay(record, offset, producer_id)
                offset += 1

    def _ensure_group(self, name: str, now_ms: int) -> None:
        """A consumer that only keeps its offsets here has a group all the same."""
        if name not in self.groups and name not in self.consumer_groups:
            self.groups[name] = Group(name, now_ms)

    def _replay(self, record: SingleRecord, offset: int, producer_id: int) -> None:
        name = record.group
        if isinstance(record, OffsetCommit):
            if record.value is not None:
                self._ensure_group(name, record.value.commit_timestamp)
            self.offsets.replay(record, offset, producer_id)
        elif isinstance(record, GroupMetadata):
            self._drop_classic(name)
            if record.value is not None:
                self.consumer_groups.pop(name, None)
                self.groups[name] = Group.restored(name, record.value)
        elif record.value is not None:
            group = self.consumer_groups.get(name)
            if group is None:
                self._drop_classic(name)
                group = self.consumer_groups[name] = ConsumerGroup(name)
            group.replay(record)
        elif isinstance(record, GroupEpoch):
            self.consumer_groups.pop(name, None)
        elif name in self.consumer_groups:
            self.consumer_groups[name].replay(record)

    def _drop_classic(self, group_id: str) -> None:
        known = self.groups.pop(group_id, None)
        if known is not None:
            known.end()

    def replay_end_of_txn(self, producer_id: int, committed: bool, offset: int) -> None:
        self.offsets.end_txn(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> None:
        self._begin_sessions(iter([*self.groups.values(), *self.consumer_groups.values()]))
        self._patterns.newest_topic = self._image().revision
        self._upkeep.plan()

    def _begin_sessions(self, groups: Iterator[Group | ConsumerGroup]) -> None:
        """Of all who were members when it was written down, some hundreds in each turn of the loop."""
        left = _SESSIONS_AT_ONCE
        for group in groups:
            if isinstance(group, Group):
                self._rebalances.take_over(group)
            else:
                self._consumers.take_over(group)
            left -= 1 + len(group.members)
            if left <= 0:
                self._shard.call_later(0, lambda state, now_ms: self._go_on_with(groups))
                return

    def _go_on_with(self, groups: Iterator[Group | ConsumerGroup]) -> GroupResult:
        self._begin_sessions(groups)
        return CommandResult()

    def unloaded(self, error: BrokerError) -> None:
        self._room.remove(self.groups)
        self.offsets.unload()
        self._consumers.timers.forget_all()
        for group in self.groups.values():
            group.end()
            for member in group.members.values():
                for reply in (member.join_reply, member.sync_reply):
                    if reply is not None:
                        reply(None, error)

    # -- members of the classic protocol, in groups of both kinds

    def join(self, joining: Joining, now_ms: int) -> GroupResult:
        group_id = joining.request.group_id
        group = self.consumer_groups.get(group_id)
        if group is not None and group.members:
            return self._classic_members.join(group, joining, now_ms)
        if group is None or joining.request.member_id:
            return self._joins.join(joining, now_ms)
        # An empty group may be of either kind: whoever comes first decides.
        del self.consumer_groups[group_id]
        result = self._joins.join(joining, now_ms)
        result.records = [*group.tombstones(), *result.records]
        return result

    def sync(self, request: SyncGroupRequest, reply: Reply, now_ms: int) -> GroupResult:
        group = self.consumer_groups.get(request.group_id)
        if group is not None and group.members:
            return self._classic_members.sync(group, request)
        return self._members.sync(request, reply, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> GroupResult:
        group = self.consumer_groups.get(request.group_id)
        if group is not None:
            return self._classic_members.heartbeat(group, request)
        return self._members.heartbeat(request, now_ms)

    def leave(self, group_id: str, identities: Sequence[MemberIdentity], now_ms: int) -> GroupResult:
        group = self.consumer_groups.get(group_id)
        if group is not None:
            return self._classic_members.leave(group, identities, now_ms)
        return self._members.leave(group_id, identities, now_ms)

    # -- whole groups

    def all_groups(self) -> list[Group | ConsumerGroup]:
        return [*self.groups.values(), *self.consumer_groups.values()]

    def find(self, group_id: str) -> Group | ConsumerGroup | None:
        return self.groups.get(group_id) or self.consumer_groups.get(group_id)

    def delete(self, group_id: str, now_ms: int) -> GroupResult:
        """Delete an empty group and its offsets."""
        group = self.find(group_id)
        if group is None:
            raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.phase not in (GroupPhase.EMPTY, ConsumerPhase.EMPTY):
            raise CodedError(ErrorCode.NON_EMPTY_GROUP)
        records: list[GroupRecord] = [
            OffsetCommit(group_id, place.topic, place.partition, None)
            for place in sorted(self.offsets.places(group_id))
        ]
        records += tombstones_of(group)
        return CommandResult(None, records, whole=False)

    def follow_topics(
        self, changed: frozenset[str], deleted: frozenset[str], are_new: bool, now_ms: int
    ) -> GroupResult:
        """Topics have changed: groups that want them look again; nobody will ask for offsets in those deleted."""
        if are_new:
            self._patterns.newest_topic = self._image().revision
        for group in self.consumer_groups.values():
            if not group.needs_refresh:
                group.needs_refresh = not changed.isdisjoint(group.topics())
        records: list[GroupRecord] = [
            OffsetCommit(group_id, place.topic, place.partition, None)
            for group_id, place in self.offsets.of_topics(deleted)
        ]
        return CommandResult(None, records, whole=False)
