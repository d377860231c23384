"""Whatever has happened to groups: a broker that reads the internal topic knows what the one before knew."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.groups.state import GroupState
from ottla.coordinator.result import CommandResult, Producer
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.records.control import Marker
from tests.coordinator.grouping import DELAY_MS, Consumer, Pending, commit
from tests.coordinator.replaying import GroupHistory, length

GROUPS = ("a", "b", "c")
groups = st.sampled_from(GROUPS)
producers = st.integers(0, 2)


class History(GroupHistory):
    """Consumers come, go, stall and commit; transactions begin and end; then the broker starts again."""

    TOPICS: ClassVar = {"t": 3, "gone": 1}
    SETTINGS: ClassVar = {"offsets_retention_minutes": "5"}

    def __init__(self) -> None:
        super().__init__()
        self.joins: dict[Consumer, Pending] = {}
        self.members: list[Consumer] = []

    @initialize()
    def begin(self) -> None:
        consumer = Consumer(self.world, GROUPS[0])
        self.joins[consumer] = consumer.begin_join()

    @rule(
        group=groups,
        instance=st.sampled_from([None, None, "one", "two"]),
        names=st.sampled_from([("range",), ("sticky", "range")]),
    )
    def come(self, group: str, instance: str | None, names: tuple[str, ...]) -> None:
        consumer = Consumer(self.world, group, instance=instance, protocols=names)
        self.joins[consumer] = consumer.begin_join()

    @rule(ms=st.sampled_from([1, DELAY_MS, 10_000, 60_000, 400_000]))
    def wait(self, ms: int) -> None:
        self.pass_time(ms)

    @rule()
    def go_on(self) -> None:
        """Everybody does what its last answer asks for."""
        for consumer, pending in list(self.joins.items()):
            if pending.is_waiting:
                continue
            del self.joins[consumer]
            if pending.answer.error_code:
                continue
            answer = consumer.take_join(pending)
            consumer.protocols = (
                answer.protocol_name,
                *(p for p in consumer.protocols if p != answer.protocol_name),
            )
            consumer.send_sync(
                {member.member_id: b"for " + member.member_id.encode() for member in answer.members}
            )
            self.members.append(consumer)
        for consumer in list(self.members):
            code = consumer.heartbeat()
            if code:
                self.members.remove(consumer)
            if code == 27:
                self.joins[consumer] = consumer.begin_join()

    @rule(data=st.data())
    def leave(self, data: Any) -> None:
        if self.members:
            self.members.pop(data.draw(st.integers(0, len(self.members) - 1))).leave()

    @rule(offset=st.integers(0, 100), partition=st.integers(0, 2), data=st.data())
    def commit_as_member(self, offset: int, partition: int, data: Any) -> None:
        if self.members:
            data.draw(st.sampled_from(self.members)).commit(offset, partition)

    @rule(group=groups, offset=st.integers(0, 100), partition=st.integers(0, 2))
    def commit_alone(self, group: str, offset: int, partition: int) -> None:
        commit(self.world, group, offset, partition, metadata=f"at {offset}")

    @rule(group=groups, offset=st.integers(0, 100), retention_ms=st.sampled_from([0, 1000, 500_000]))
    def commit_for_a_while(self, group: str, offset: int, retention_ms: int) -> None:
        """As clients did before version 5."""
        entry = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name="gone", partitions=[entry])],
        )
        self.world.ask(request, 4)

    @rule()
    def make_a_topic_anew(self) -> None:
        self.world.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")], timeout_ms=1000))
        self.world.make_topic("gone", 1)

    @rule(group=groups, producer=producers, offset=st.integers(0, 100), partition=st.integers(0, 2))
    def commit_in_transaction(self, group: str, producer: int, offset: int, partition: int) -> None:
        request = TxnOffsetCommitRequest(group_id=group, producer_id=producer, producer_epoch=0)

        def command(state: GroupState, now_ms: int) -> CommandResult[Any]:
            return state.txn_offset_commit(request, [("t", None, [(partition, offset, -1, "")])], now_ms)

        self.world.services.groups.run(group, command, lambda codes, error: None)
        self.world.runtime.run_pending()

    @rule(producer=producers, committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        for partition in range(2):
            self.world.services.groups.end_txn(
                partition, Producer(producer, 0), Marker(not committed, 0), lambda answer, error: None
            )
        self.world.runtime.run_pending()

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        self.world.ask(DeleteGroupsRequest(groups_names=[group]))

    @rule(group=groups, partition=st.integers(0, 2))
    def delete_offset(self, group: str, partition: int) -> None:
        entry = OffsetDeleteRequestPartition(partition_index=partition)
        topic = OffsetDeleteRequestTopic(name="t", partitions=[entry])
        self.world.ask(OffsetDeleteRequest(group_id=group, topics=[topic]))

    @rule()
    def start_again(self) -> None:
        before, settled = self.known(), self.settled()
        self.world.restart()
        assert self.known() == before
        # Groups in between go back to what they were when they last were settled.
        after = self.settled()
        assert {name: after.get(name) for name in settled} == settled
        self.joins.clear()

    @invariant()
    def nobody_has_two_places(self) -> None:
        for state in self.world.services.groups.states():
            for group in state.groups.values():
                assert set(group.static.values()) <= set(group.members)
                assert group.joining <= set(group.members)
                assert group.not_synced <= set(group.members)
                assert group.leader in group.members if group.members else True
                assert (group.phase is GroupPhase.EMPTY) <= (not group.members)

    def known(self) -> list[Any]:
        """What must survive: groups, and offsets, pending or not."""
        return [
            (
                set(state.groups),
                {name: state.offsets.of(name) for name in state.groups},
                state.offsets.pending(),
            )
            for state in self.world.services.groups.states()
        ]

    def settled(self) -> dict[str, Any]:
        """And all about groups that are stable or empty."""
        return {
            group.group_id: (group.phase, group.snapshot(), group.topics)
            for state in self.world.services.groups.states()
            for group in state.groups.values()
            if group.phase in (GroupPhase.STABLE, GroupPhase.EMPTY)
        }


TestHistories = History.TestCase
TestHistories.settings = length(histories=20, steps=30)
