"""Members of classic groups, as scripts tell them what to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.conversation.talk import Talk

JOIN, SYNC, HEARTBEAT, LEAVE, DESCRIBE = 9, 5, 4, 5, 5  # in which versions, unless it matters
SESSION_MS = 60_000
PREPARING, COMPLETING, STABLE, EMPTY = "PreparingRebalance", "CompletingRebalance", "Stable", "Empty"


def subscription(*topics: str) -> bytes:
    """What a consumer says it wants, in the first version of its protocol."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


class Member:
    """One consumer of a group. What it sends is written down where a step is named."""

    def __init__(
        self,
        talk: Talk,
        group: str,
        *,
        instance: str | None = None,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = SESSION_MS,
    ) -> None:
        self.talk = talk
        self.group = group
        self.instance = instance
        self.protocols = {"range": subscription("groups")} if protocols is None else protocols
        self.protocol_type = protocol_type
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.id = ""
        self.generation = -1
        self.protocol = next(iter(self.protocols), "")

    # -- requests

    def joining(self, **other: Any) -> JoinGroupRequest:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": self.protocol_type,
            "protocols": protocols(self.protocols),
            **other,
        }
        return JoinGroupRequest(**fields)

    def syncing(self, assignments: dict[str, bytes] | None = None, **other: Any) -> SyncGroupRequest:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol,
            "assignments": [
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in (assignments or {}).items()
            ],
            **other,
        }
        return SyncGroupRequest(**fields)

    def beating(self, **other: Any) -> HeartbeatRequest:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            **other,
        }
        return HeartbeatRequest(**fields)

    # -- what members do; nothing of it is written down

    def take_id(self) -> None:
        """Ask for an id, and no more: the coordinator waits for whoever has one."""
        response = self.talk.request(JOIN, self.joining())
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED, response
        self.seen(response)

    def join(self) -> Any:
        """Join, where nobody else has to be waited for."""
        response = self.talk.request(JOIN, self.joining())
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.seen(response)
            response = self.talk.request(JOIN, self.joining())
        assert response.error_code == 0, response
        self.seen(response)
        return response

    def sync(self, assignments: dict[str, bytes] | None = None) -> None:
        response = self.talk.request(SYNC, self.syncing(assignments))
        assert response.error_code == 0, response

    def settle(self) -> None:
        """Join alone and be the leader of a stable group."""
        self.join()
        self.sync({self.id: b"all of it"})

    def begin_join(
        self, step: str, version: int = JOIN, only: Callable[[Any], Any] | None = None
    ) -> Callable[[], Any]:
        """Join where others have to be waited for; an id is asked for first. The answer is written down."""
        if not self.id and self.instance is None and version >= 4:
            self.take_id()
        wait = self.talk.begin(step, version, self.joining(), only)

        def joined() -> Any:
            response = wait()
            if response is not None:
                self.seen(response)
            return response

        return joined

    def seen(self, response: Any) -> None:
        """Who the broker says that this is."""
        self.talk.normal.message(response, JOIN)
        self.id = response.member_id
        if response.error_code == 0:
            self.generation = response.generation_id
            self.protocol = response.protocol_name

    def leave(self) -> None:
        members = [MemberIdentity(member_id=self.id, group_instance_id=self.instance)]
        response = self.talk.request(LEAVE, LeaveGroupRequest(group_id=self.group, members=members))
        assert response.members[0].error_code == 0, response

    def beat(self) -> int:
        code: int = self.talk.request(HEARTBEAT, self.beating()).error_code
        return code


def protocols(named: dict[str, bytes]) -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in named.items()]


def await_group(talk: Talk, group: str, state: str, members: int | None = None) -> None:
    """Wait until a group is so."""

    def is_so(response: Any) -> bool:
        found = response.groups[0]
        return found.group_state == state and members in (None, len(found.members))

    talk.until(DESCRIBE, DescribeGroupsRequest(groups=[group]), is_so)


def await_coordinator(talk: Talk) -> None:
    """The topic of groups is made when somebody asks who looks after one."""
    talk.until(3, FindCoordinatorRequest(key="g"), lambda response: response.error_code == 0)
