"""How a classic group gets from one generation to the next: who is waited for, how long, and what all are told.

A rebalance begins when a member comes, goes or changes its mind (`prepare`). It waits for all members to join again,
at most as long as the most patient one allows; the first rebalance of a group waits a little longer for company. Then
a generation begins (`complete`) and its leader has to say who gets what before another such time has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ottla.config import BrokerConfig
from ottla.coordinator.classic.group import QUICKLY_READ, Group, Member, announced
from ottla.coordinator.classic.phases import GroupEvent, GroupPhase
from ottla.coordinator.result import Command, CommandResult, GroupResult, Reply, Shard
from ottla.errors import BrokerError
from ottla.internal_topics.decoding import subscribed_topics
from ottla.internal_topics.group_records import GroupMetadata, GroupRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.sync_group import SyncGroupResponse
from ottla.runtime import Timer

# How long a new member may wait for its first generation without a sign of life.
NEW_MEMBER_TIMEOUT_MS = 300_000

# A consumer, or a group, that names more topics than these counts as subscribed to every topic.
_MOST_OF_MEMBER = 10_000
_MOST_OF_GROUP = 100_000


@dataclass(slots=True)
class Effects:
    """What a command on a group leads to, gathered step by step."""

    now_ms: int
    records: list[GroupRecord] = field(default_factory=list)
    replies: list[tuple[Reply, Any]] = field(default_factory=list)
    undo: Callable[[], None] | None = None

    def result(self, response: Any = None) -> GroupResult:
        """Groups have changed themselves: their records are pictures of them, not changes."""
        return CommandResult(response, self.records, replay=False, replies=self.replies, undo=self.undo)


class Rebalances:
    """The rebalances, sessions and timers of one shard's groups."""

    def __init__(self, shard: Shard, config: BrokerConfig) -> None:
        self._shard = shard
        self._initial_delay_ms = config.group_initial_rebalance_delay_ms

    # -- from one generation to the next

    def prepare_or_complete(self, group: Group, fx: Effects) -> None:
        """Something has changed: begin a rebalance, or see whether the one that goes on can end."""
        if group.phase in (GroupPhase.STABLE, GroupPhase.COMPLETING, GroupPhase.EMPTY):
            self.prepare(group, fx)
        else:
            self.complete_if_ready(group, fx)

    def prepare(self, group: Group, fx: Effects) -> None:
        if group.phase is GroupPhase.COMPLETING:
            self._take_back_assignments(group, fx)
        _cancel(group.sync_timer)
        group.not_synced.clear()
        is_first = group.phase is GroupPhase.EMPTY
        if is_first:
            delay_ms = self._initial_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._wait_for_company(group, delay_ms, left_ms)
        group.move(GroupEvent.REBALANCE, fx.now_ms)
        if not is_first:
            if group.have_all_joined:
                self.complete(group, fx)
            else:
                self._wait_for_joins(group)

    def complete_if_ready(self, group: Group, fx: Effects) -> None:
        """End the rebalance if all have joined; the first one of a group ends by its timer only."""
        if group.phase is GroupPhase.PREPARING and not group.was_empty and group.have_all_joined:
            self.complete(group, fx)

    def complete(self, group: Group, fx: Effects) -> None:
        """Begin the next generation with those who have joined, and static members, who may be late."""
        _cancel(group.join_timer)
        for member in [m for m in group.members.values() if m.member_id not in group.joining]:
            if member.instance_id is None:
                group.remove(member)
        if group.members and not group.elect_joined_leader():
            self._wait_for_joins(group)
            return
        group.begin_generation(fx.now_ms)
        if not group.members:
            fx.records.append(GroupMetadata(group.group_id, group.snapshot()))
            return
        self.read_topics(group)
        self._tell_all(group, fx)
        group.joining.clear()
        group.sync_timer = self._later(
            group, group.rebalance_timeout_ms, partial(self._sync_due, group.generation)
        )

    def _tell_all(self, group: Group, fx: Effects) -> None:
        """Answer those who have joined. A large group is told in several turns of the loop, its leader last."""
        told = Generation(group)
        now_ms = self._shard.monotonic_ms()
        leader: list[tuple[Reply, Any]] = []
        for member in group.members.values():
            reply, member.join_reply = member.join_reply, None
            member.deadline_ms = now_ms + member.session_timeout_ms
            member.is_new = False
            answer = partial(self._tell_joined, group, member, reply, told)
            (leader if member.member_id == told.leader else fx.replies).append((answer, None))
        fx.replies += leader

    def _tell_joined(
        self,
        group: Group,
        member: Member,
        reply: Reply | None,
        told: Generation,
        _: object,
        error: BrokerError | None,
    ) -> None:
        self._begin_session(group, member)
        told.list_member(member)
        if reply is not None:
            reply(None if error is not None else told.joined(member.member_id), error)

    def _begin_session(self, group: Group, member: Member) -> None:
        if group.members.get(member.member_id) is member:
            self.touch(group, member)

    def _wait_for_joins(self, group: Group) -> None:
        _cancel(group.join_timer)
        group.join_timer = self._later(group, group.rebalance_timeout_ms, self.complete)

    def _wait_for_company(self, group: Group, delay_ms: int, left_ms: int) -> None:
        _cancel(group.join_timer)
        group.join_timer = self._later(group, delay_ms, partial(self._company_due, delay_ms, left_ms))

    def _company_due(self, delay_ms: int, left_ms: int, group: Group, fx: Effects) -> None:
        if group.has_new_member and left_ms:
            group.has_new_member = False
            next_delay_ms = min(self._initial_delay_ms, left_ms)
            self._wait_for_company(group, next_delay_ms, max(left_ms - delay_ms, 0))
        else:
            self.complete(group, fx)

    def _sync_due(self, generation: int, group: Group, fx: Effects) -> None:
        """Members that have not asked for their assignment are out."""
        if group.generation != generation or not group.not_synced:
            return
        if group.phase in (GroupPhase.COMPLETING, GroupPhase.STABLE):
            for member_id in list(group.not_synced):
                self.forget(group, group.members[member_id], fx)
            self.prepare(group, fx)

    # -- what consumers want

    def read_topics(self, group: Group) -> None:
        """Find out what the members of a large group want. Until that is known, it may be anything."""
        if group.topics is None and group.is_consumers and group.members:
            members = iter(list(group.members.values()))
            self._later(group, 0, partial(self._read_more, group.generation, members, set()))

    def _read_more(
        self, generation: int, members: Iterator[Member], found: set[str], group: Group, fx: Effects
    ) -> None:
        if group.generation != generation:
            return
        left = QUICKLY_READ
        for member in members:
            said = member.metadata(group.protocol)
            topics = subscribed_topics(said) if announced(said) <= _MOST_OF_MEMBER else None
            if topics is None or len(found) > _MOST_OF_GROUP:
                return
            found.update(topics)
            left -= len(topics)
            if left <= 0:
                self._later(group, 0, partial(self._read_more, generation, members, found))
                return
        group.topics = frozenset(found)

    # -- assignments

    def give_assignments(self, group: Group, assignments: dict[str, bytes], fx: Effects) -> None:
        """The leader has spoken: the group is stable once that is written down."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.move(GroupEvent.ASSIGNED, fx.now_ms)
        fx.records.append(GroupMetadata(group.group_id, group.snapshot()))
        fx.undo = partial(self._undo_assignments, group)
        told = Generation(group)
        self._tell_waiting(group, fx, lambda member: partial(told.synced, member.assignment))

    def _tell_waiting(
        self, group: Group, fx: Effects, answer: Callable[[Member], Callable[[], SyncGroupResponse]]
    ) -> None:
        """Answer those who wait for their assignment, in several turns of the loop if they are many."""
        now_ms = self._shard.monotonic_ms()
        for member in group.members.values():
            reply, member.sync_reply = member.sync_reply, None
            if reply is not None:
                member.deadline_ms = now_ms + member.session_timeout_ms
                told = partial(self._tell_synced, group, member, reply, answer(member))
                fx.replies.append((told, None))

    def _tell_synced(
        self,
        group: Group,
        member: Member,
        reply: Reply,
        answer: Callable[[], SyncGroupResponse],
        _: object,
        error: BrokerError | None,
    ) -> None:
        self._begin_session(group, member)
        reply(None if error is not None else answer(), error)

    def _undo_assignments(self, group: Group) -> None:
        """They are too large to be written down: try once more, perhaps the members ask for less."""
        group.move(GroupEvent.NOT_WRITTEN, group.timestamp)
        self._later(group, 0, self.prepare_or_complete)

    def _take_back_assignments(self, group: Group, fx: Effects) -> None:
        for member in group.members.values():
            member.assignment = b""
        refusal = partial(SyncGroupResponse, error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        self._tell_waiting(group, fx, lambda member: refusal)

    # -- sessions

    def take_over(self, group: Group) -> None:
        """The group was read from the log."""
        if group.phase is not GroupPhase.DEAD:
            for member in group.members.values():
                if member.timer is None:
                    self.touch(group, member)
            self.read_topics(group)

    def touch(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """The member is alive: its session begins again. The timer follows lazily, since this is done all the time."""
        now_ms = self._shard.monotonic_ms()
        member.deadline_ms = now_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
        if member.timer is not None and member.timer_due_ms > member.deadline_ms:
            member.timer.cancel()
            member.timer = None
        if member.timer is None:
            self._watch(group, member, now_ms)

    def _watch(self, group: Group, member: Member, now_ms: int) -> None:
        member.timer_due_ms = member.deadline_ms
        member.timer = self._later(group, member.deadline_ms - now_ms, partial(self._session_due, member))

    def _session_due(self, member: Member, group: Group, fx: Effects) -> None:
        member.timer = None
        if group.members.get(member.member_id) is not member:
            return
        now_ms = self._shard.monotonic_ms()
        if now_ms < member.deadline_ms:
            self._watch(group, member, now_ms)
        elif member.is_new or (member.join_reply is None and member.sync_reply is None):
            # A member that waits for an answer of this coordinator cannot send heartbeats.
            self.forget(group, member, fx)
            if group.phase is not GroupPhase.PREPARING:
                self.prepare_or_complete(group, fx)
            elif group.have_all_joined:
                self.complete(group, fx)

    def forget(self, group: Group, member: Member, fx: Effects) -> None:
        """A member is no longer one."""
        code = ErrorCode.UNKNOWN_MEMBER_ID
        if member.join_reply is not None:
            fx.replies.append((member.join_reply, JoinGroupResponse(error_code=code, protocol_name=None)))
        if member.sync_reply is not None:
            fx.replies.append((member.sync_reply, SyncGroupResponse(error_code=code)))
        member.join_reply = member.sync_reply = None
        group.remove(member)

    def expect(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """An id was given out: whoever got it should join with it before long."""
        group.pending[member_id] = self._later(group, timeout_ms, partial(self._pending_due, member_id))

    def _pending_due(self, member_id: str, group: Group, fx: Effects) -> None:
        group.pending.pop(member_id, None)
        if group.phase is GroupPhase.PREPARING and group.have_all_joined:
            self.complete(group, fx)

    def _later(self, group: Group, delay_ms: float, step: Callable[[Group, Effects], None]) -> Timer:
        """A step of a group later, unless the group is gone by then."""

        def command(state: object, now_ms: int) -> GroupResult:
            fx = Effects(now_ms)
            if group.phase is not GroupPhase.DEAD:
                step(group, fx)
            return fx.result()

        due: Command[Any] = command
        return self._shard.call_later(delay_ms, due)


class Generation:
    """What the members of a group are told of a generation."""

    __slots__ = ("generation", "leader", "members", "protocol", "protocol_type")

    def __init__(self, group: Group) -> None:
        self.generation = group.generation
        self.protocol_type = group.protocol_type
        self.protocol = group.protocol
        self.leader = group.leader or ""
        self.members: list[JoinGroupResponseMember] = []  # for the leader

    def list_member(self, member: Member) -> None:
        self.members.append(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
        )

    def joined(self, member_id: str, *, leader: str | None = None, skip: bool = False) -> JoinGroupResponse:
        """Only the leader gets the list of all, if it is to be the leader."""
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader if leader is None else leader,
            skip_assignment=skip,
            member_id=member_id,
            members=self.members if member_id == self.leader and leader is None else [],
        )

    def synced(self, assignment: bytes) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=assignment
        )


def joined(
    group: Group, member: Member, *, leader: str | None = None, skip: bool = False
) -> JoinGroupResponse:
    """What a member is told, once more, of the generation it is in."""
    told = Generation(group)
    if group.leader == member.member_id and leader is None:
        for one in group.members.values():
            told.list_member(one)
    return told.joined(member.member_id, leader=leader, skip=skip)


def synced(group: Group, member: Member) -> SyncGroupResponse:
    """A member's assignment."""
    return Generation(group).synced(member.assignment)


def _cancel(timer: Timer | None) -> None:
    if timer is not None:
        timer.cancel()
