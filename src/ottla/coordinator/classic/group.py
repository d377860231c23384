"""A classic group: its members, their protocols, its generation. Facts and small steps, no timers and no answers.

What is written to the log is a picture of a group that is stable or empty (`snapshot`); all that lies between, such as
who has joined so far, is known only here and begins anew when another broker takes over.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ottla.coordinator.classic.phases import TABLE, GroupEvent, GroupPhase
from ottla.coordinator.result import Reply
from ottla.errors import CodedError
from ottla.internal_topics.decoding import subscribed_topics
from ottla.internal_topics.group_records import GroupValue, MemberMetadata
from ottla.protocol.errors import ErrorCode
from ottla.runtime import Timer
from ottla.states import next_state

CONSUMER_PROTOCOL = "consumer"
# Topics that members name. If they name more, those are read when a generation has begun, a few at a time.
QUICKLY_READ: Final = 1000


class Member:
    """One consumer of a group, as the coordinator sees it."""

    __slots__ = (
        "assignment", "client_host", "client_id", "deadline_ms", "instance_id", "is_new", "join_reply", "member_id",
        "protocols", "rebalance_timeout_ms", "session_timeout_ms", "sync_reply", "timer", "timer_due_ms",
    )  # fmt: skip

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: tuple[tuple[str, bytes], ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols  # names and what the member says in each, the best first
        self.assignment = assignment
        self.is_new = False  # has never been in a generation
        self.join_reply: Reply | None = None  # waits for the next generation
        self.sync_reply: Reply | None = None  # waits for its assignment
        self.deadline_ms = 0  # when its session ends, unless it sends something
        self.timer: Timer | None = None
        self.timer_due_ms = 0

    @property
    def metadata_bytes(self) -> int:
        """How much it says in all of them."""
        return sum([len(data) for _, data in self.protocols])

    def metadata(self, protocol: str | None) -> bytes:
        """What the member says in a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The protocol that it likes best."""
        return next(name for name, _ in self.protocols if name in candidates)


class Group:
    """A classic group."""

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.phase = GroupPhase.EMPTY
        self.was_empty = True  # before the last change of phase
        self.timestamp = now_ms  # of the last change of phase; -1 if it is not known
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.generation = 0
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # instance id -> member id
        self.pending: dict[str, Timer] = {}  # ids that were given out and have not been used yet
        self.joining: set[str] = set()  # members that wait for the next generation
        self.not_synced: set[str] = set()
        self.has_new_member = False  # since the first rebalance began
        self.topics: frozenset[str] | None = None  # what consumers subscribe to, if that can be read
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self._supported: Counter[str] = Counter()
        self.metadata_bytes = 0  # of the protocols of all members

    @classmethod
    def restored(cls, group_id: str, value: GroupValue) -> Group:
        """A group as the log has it."""
        group = cls(group_id, value.timestamp)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        for entry in value.members:
            protocols = ((value.protocol or "", entry.subscription),)
            group._put(
                Member(
                    entry.member_id,
                    entry.instance_id,
                    entry.client_id,
                    entry.client_host,
                    entry.rebalance_timeout_ms,
                    entry.session_timeout_ms,
                    protocols,
                    entry.assignment,
                )
            )
        group.leader = value.leader
        if group.members:
            group.move(GroupEvent.RESTORED, value.timestamp)
        group.topics = group.subscribed() if group.announced_topics <= QUICKLY_READ else None
        return group

    def snapshot(self) -> GroupValue:
        """The group as it is written down."""
        members = tuple(
            MemberMetadata(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(self.protocol),
                member.assignment,
            )
            for member in self.members.values()
        )
        return GroupValue(
            self.protocol_type or "", self.generation, self.protocol, self.leader, self.timestamp, members
        )

    # -- questions

    @property
    def is_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def have_all_joined(self) -> bool:
        return len(self.joining) == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as its most patient member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, names: list[str]) -> bool:
        """Whether all members can agree with one that speaks these protocols."""
        if self.phase is GroupPhase.EMPTY:
            return bool(protocol_type and names)
        return self.protocol_type == protocol_type and any(
            self._supported[name] == len(self.members) for name in names
        )

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member wants the topic; of consumers that cannot be understood, every topic."""
        return self.is_consumers if self.topics is None else topic in self.topics

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member that asks; CodedError if it is not one, or if another one has its instance id now."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                raise CodedError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise CodedError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise CodedError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, version: int
    ) -> None:
        """CodedError unless such a member may commit offsets now, in whatever version it does."""
        if generation < 0 and self.phase is GroupPhase.EMPTY:
            return  # nobody's group, or an administrator
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise CodedError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and self.phase is not GroupPhase.EMPTY:
            raise CodedError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.phase is GroupPhase.COMPLETING:
            raise CodedError(ErrorCode.REBALANCE_IN_PROGRESS)

    # -- changes

    def move(self, event: GroupEvent, now_ms: int) -> None:
        """The only way to another phase; IllegalEventError if there is none."""
        phase = next_state(TABLE, self.phase, event)
        self.was_empty = self.phase is GroupPhase.EMPTY
        self.phase = phase
        self.timestamp = now_ms

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._put(member)

    def _put(self, member: Member) -> None:
        self.members[member.member_id] = member
        self._supported.update(name for name, _ in member.protocols)
        self.metadata_bytes += member.metadata_bytes
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def change_protocols(self, member: Member, protocols: tuple[tuple[str, bytes], ...]) -> None:
        self._supported.subtract(name for name, _ in member.protocols)
        self.metadata_bytes -= member.metadata_bytes
        member.protocols = protocols
        self.metadata_bytes += member.metadata_bytes
        self._supported.update(name for name, _ in protocols)

    def remove(self, member: Member) -> None:
        """Forget a member. If it led, another one does."""
        del self.members[member.member_id]
        self._supported.subtract(name for name, _ in member.protocols)
        self.metadata_bytes -= member.metadata_bytes
        self.joining.discard(member.member_id)
        self.not_synced.discard(member.member_id)
        if member.instance_id is not None:
            self.static.pop(member.instance_id, None)
        if member.timer is not None:
            member.timer.cancel()
            member.timer = None
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member has come back: the same place in the group under a new id."""
        old = member.member_id
        # In its old place: the order of members decides who is asked first.
        self.members = {member_id if key == old else key: value for key, value in self.members.items()}
        member.member_id = member_id
        for ids in (self.joining, self.not_synced):
            if old in ids:
                ids.remove(old)
                ids.add(member_id)
        assert member.instance_id is not None
        self.static[member.instance_id] = member_id
        if self.leader == old:
            self.leader = member_id

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else take the first who has; False if nobody has."""
        if self.leader in self.joining:
            return True
        joined = next((key for key in self.members if key in self.joining), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def begin_generation(self, now_ms: int) -> None:
        """All have joined who will: agree on a protocol, or be empty."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.topics = self.subscribed() if self.announced_topics <= QUICKLY_READ else None
        self.move(GroupEvent.JOINED if self.members else GroupEvent.DESERTED, now_ms)
        self.not_synced = set(self.members)

    def select_protocol(self) -> str:
        """The one with the most votes of those that all members speak."""
        candidates = {name for name, count in self._supported.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    @property
    def announced_topics(self) -> int:
        """How many topics its members say that they name."""
        return sum([announced(member.metadata(self.protocol)) for member in self.members.values()])

    def subscribed(self) -> frozenset[str] | None:
        if not self.is_consumers or (self.members and self.protocol is None):
            return None
        topics: set[str] = set()
        for member in self.members.values():
            wanted = subscribed_topics(member.metadata(self.protocol))
            if wanted is None:
                return None
            topics.update(wanted)
        return frozenset(topics)

    def end(self) -> None:
        """The group is gone: nothing that it was waiting for matters any more."""
        self.move(GroupEvent.REMOVED, self.timestamp)
        timers = [self.join_timer, self.sync_timer, *self.pending.values()]
        timers += [member.timer for member in self.members.values()]
        for timer in timers:
            if timer is not None:
                timer.cancel()


def announced(subscription: bytes) -> int:
    """How many topics a consumer is going to name; it may be lying."""
    return min(int.from_bytes(subscription[2:6], "big"), len(subscription))
