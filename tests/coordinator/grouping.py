"""Members of groups for tests: they speak the protocol to a broker's handlers, on a simulated clock."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.api.world import World

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000


def subscription(*topics: str) -> bytes:
    """What a consumer says it wants, in the first version of its protocol."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


class Pending:
    """An answer that may come later."""

    def __init__(self, world: World, request: Any, version: int) -> None:
        self.answers: list[Any] = []
        world.call(request, version, self.answers)
        world.runtime.run_pending()

    @property
    def is_waiting(self) -> bool:
        return not self.answers

    @property
    def answer(self) -> Any:
        (answer,) = self.answers
        return answer


class Consumer:
    """A member, or somebody who would like to be one."""

    def __init__(
        self,
        world: World,
        group: str = GROUP,
        *,
        instance: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        metadata: bytes = subscription("t"),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
    ) -> None:
        self.world = world
        self.group = group
        self.instance = instance
        self.protocols = protocols
        self.metadata = metadata
        self.protocol_type = protocol_type
        self.session_ms = session_ms
        self.member_id = ""
        self.generation = -1

    def send_join(self, version: int = 9) -> Pending:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance if version >= 5 else None,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=self.metadata) for name in self.protocols
            ],
        )
        return Pending(self.world, request, version)

    def begin_join(self, version: int = 9) -> Pending:
        """Join; where an id is required first, with that."""
        pending = self.send_join(version)
        if pending.answers and pending.answer.error_code == 79:
            self.member_id = pending.answer.member_id
            pending = self.send_join(version)
        return pending

    def take_join(self, pending: Pending) -> Any:
        answer = pending.answer
        assert answer.error_code == 0, answer.error_code
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def send_sync(self, assignments: dict[str, bytes] | None = None, version: int = 5) -> Pending:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance if version >= 3 else None,
            protocol_type=self.protocol_type if version >= 5 else None,
            protocol_name=self.protocols[0] if version >= 5 else None,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in (assignments or {}).items()
            ],
        )
        return Pending(self.world, request, version)

    def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        code: int = self.world.ask(request).error_code
        return code

    def leave(self) -> Any:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        return self.world.ask(LeaveGroupRequest(group_id=self.group, members=[identity]))

    def commit(self, offset: int, partition: int = 0, topic: str = "t", **fields: Any) -> int:
        return commit(
            self.world,
            self.group,
            offset,
            partition,
            topic,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            **fields,
        )


def commit(
    world: World, group: str, offset: int, partition: int = 0, topic: str = "t", *, version: int = 9,
    epoch: int = -1, metadata: str = "", **fields: Any,
) -> int:  # fmt: skip
    """Commit one offset; the error code."""
    entry = OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        committed_metadata=metadata,
    )
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[entry])], **fields
    )
    answer = world.ask(request, version)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def committed(
    world: World, group: str, *partitions: int, topic: str = "t", version: int = 9, **fields: Any
) -> list[Any]:
    """What is committed for the partitions of a topic; for all that the group has if none is given."""
    topics = (
        [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))] if partitions else None
    )
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], **fields)
    (answer,) = world.ask(request, version).groups
    assert answer.error_code == 0, answer.error_code
    return [entry for one in answer.topics for entry in one.partitions]


def find(world: World, key: str = GROUP) -> Any:
    return world.ask(FindCoordinatorRequest(coordinator_keys=[key])).coordinators[0]


def settle(*consumers: Consumer) -> dict[str, Any]:
    """Bring consumers into one generation, each with its id as its assignment; what each was told, by id."""
    pending = [consumer.begin_join() for consumer in consumers]
    consumers[0].world.runtime.advance(2 * DELAY_MS)  # one more where several come
    consumers[0].world.runtime.run_pending()
    joined = {}
    for consumer, one in zip(consumers, pending, strict=True):
        joined[consumer.member_id] = consumer.take_join(one)
    assign(*consumers)
    return joined


def assign(*consumers: Consumer) -> None:
    """All sync; each gets its own id."""
    everything = {consumer.member_id: consumer.member_id.encode() for consumer in consumers}
    syncs = [consumer.send_sync(everything) for consumer in consumers]
    for consumer, sync in zip(consumers, syncs, strict=True):
        assert sync.answer.error_code == 0
        assert sync.answer.assignment == consumer.member_id.encode()
