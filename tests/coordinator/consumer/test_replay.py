"""Whatever has happened to consumer groups: a broker that reads the internal topic knows what the one before knew.

And at no time do two members have one partition.
"""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.consumer.group import ConsumerGroup
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.coordinator.consumer.test_migration import assignment, owned
from tests.coordinator.grouping import DELAY_MS, Consumer, subscription
from tests.coordinator.modern import Modern
from tests.coordinator.replaying import GroupHistory, length

GROUPS = ("a", "b")
TOPICS = ("t", "u", "uu", "v")
REBALANCE, ID_REQUIRED = 27, 79
groups = st.sampled_from(GROUPS)
topics = st.lists(st.sampled_from(TOPICS), unique=True, max_size=3).map(tuple)
which = st.integers(0, 20)


class History(GroupHistory):
    """Members of both protocols come, go, stall and change their minds; topics come and go; the broker starts again."""

    TOPICS: ClassVar = {"t": 3, "u": 2}
    SETTINGS: ClassVar = {"group_initial_rebalance_delay_ms": "0"}

    def __init__(self) -> None:
        super().__init__()
        self.modern: list[Modern] = []
        self.classic: list[Consumer] = []

    @rule(
        group=groups,
        topics=topics,
        pattern=st.sampled_from([None, None, "u+", "t|v"]),
        instance=st.sampled_from([None, None, "one"]),
        assignor=st.sampled_from([None, "range", "uniform"]),
    )
    def join(
        self, group: str, topics: tuple[str, ...], pattern: str | None, instance: str | None, assignor: str
    ) -> None:
        member = Modern(
            self.world,
            group,
            topics=topics,
            pattern=pattern,
            instance=instance,
            assignor=assignor,
            rebalance_ms=20_000,
        )
        if member.join() == 0:
            self.modern.append(member)

    @rule(rounds=st.integers(1, 3))
    def go_on(self, rounds: int) -> None:
        """Everybody says what it has, and does what its answer asks for."""
        for _ in range(rounds):
            self.modern = [member for member in self.modern if member.confirm() == 0]
            self.classic = [member for member in self.classic if self._beats(member)]
            self.pass_time(1)

    def _beats(self, member: Consumer) -> bool:
        code = member.heartbeat()
        return code == 0 or (code == REBALANCE and self._joins(member))

    def _joins(self, member: Consumer) -> bool:
        pending = member.begin_join()
        self.pass_time(DELAY_MS)
        if pending.is_waiting or pending.answer.error_code:
            return False
        answer = member.take_join(pending)
        everyone = {one.member_id: assignment(number) for number, one in enumerate(answer.members)}
        sync = member.send_sync(everyone)
        return bool(sync.answers) and sync.answer.error_code == 0

    @rule(group=groups, has=st.sets(st.integers(0, 2)), instance=st.sampled_from([None, None, "one"]))
    def join_by_the_classic_protocol(self, group: str, has: set[int], instance: str | None) -> None:
        metadata = b"\0\1" + subscription("t")[2:] + owned(has)
        member = Consumer(self.world, group, metadata=metadata, instance=instance, session_ms=30_000)
        if self._joins(member):
            self.classic.append(member)

    @rule(at=which)
    def beat(self, at: int) -> None:
        if self.modern:
            member = self.modern[at % len(self.modern)]
            if member.beat() != 0:
                self.modern.remove(member)

    @rule(at=which, topics=topics, pattern=st.sampled_from([None, "", "v+"]))
    def want_something_else(self, at: int, topics: tuple[str, ...], pattern: str | None) -> None:
        if self.modern:
            member = self.modern[at % len(self.modern)]
            member.beat(subscribed_topic_names=list(topics), subscribed_topic_regex=pattern)

    @rule(at=which, for_now=st.booleans())
    def leave(self, at: int, for_now: bool) -> None:
        if self.modern:
            member = self.modern.pop(at % len(self.modern))
            member.leave(-2 if for_now and member.instance else -1)

    @rule(at=which)
    def leave_by_the_classic_protocol(self, at: int) -> None:
        if self.classic:
            self.classic.pop(at % len(self.classic)).leave()

    @rule(at=which, offset=st.integers(0, 100))
    def commit(self, at: int, offset: int) -> None:
        members: list[Any] = [*self.modern, *self.classic]
        if members:
            members[at % len(members)].commit(offset)

    @rule(ms=st.sampled_from([1, 10_001, 25_000, 50_000]))
    def wait(self, ms: int) -> None:
        self.pass_time(ms)

    @rule(name=st.sampled_from(["uu", "v"]))
    def make_topic(self, name: str) -> None:
        if name not in self.world.image.topics:
            self.world.make_topic(name, 2)

    @rule(name=st.sampled_from(["uu", "v"]))
    def delete_topic(self, name: str) -> None:
        self.world.ask(DeleteTopicsRequest(topic_names=[name]), 5)

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        self.world.ask(DeleteGroupsRequest(groups_names=[group]))

    @rule()
    def start_again(self) -> None:
        before, settled = self.known(), self.settled()
        self.world.restart()
        assert self.known() == before
        # A rebalance that goes on is forgotten: then the last settled generation is there again.
        assert settled.items() <= self.settled().items()

    @invariant()
    def no_partition_has_two_members(self) -> None:
        for state in self.world.services.groups.states():
            assert not state.groups.keys() & state.consumer_groups.keys()
            for group in state.consumer_groups.values():
                _check(group)

    def known(self) -> list[Any]:
        found = []
        for state in self.world.services.groups.states():
            modern = {name: _known(group) for name, group in state.consumer_groups.items()}
            offsets = {name: state.offsets.of(name) for name in (*state.groups, *state.consumer_groups)}
            found.append((set(state.groups), modern, offsets))
        return found

    def settled(self) -> dict[str, Any]:
        """The classic groups that are."""
        return {
            group.group_id: group.snapshot()
            for state in self.world.services.groups.states()
            for group in state.groups.values()
            if group.phase is GroupPhase.STABLE
        }


def _known(group: ConsumerGroup) -> dict[str, Any]:
    return {name: value for name, value in vars(group).items() if name != "needs_refresh"}


def _check(group: ConsumerGroup) -> None:
    have: list[tuple[Any, int]] = []
    for member in group.members.values():
        for partitions in (member.standing.assigned, member.standing.revoking):
            have += ((topic, number) for topic, numbers in partitions.items() for number in numbers)
        assert member.epoch <= group.epoch
    assert len(have) == len(set(have))
    should = [(t, n) for target in group.targets.values() for t, numbers in target.items() for n in numbers]
    assert len(should) == len(set(should))
    assert set(group.targets) <= set(group.members)
    assert group.static == {
        member.details.instance_id: name
        for name, member in group.members.items()
        if member.details.instance_id
    }
    wanted = [member.details.pattern for member in group.members.values() if member.details.pattern]
    assert sum(group.patterns.values()) == len(wanted)
    assert set(group.patterns) == set(wanted)
    assert set(group.resolved) <= set(wanted)


TestHistories = History.TestCase
TestHistories.settings = length(histories=25, steps=40)
