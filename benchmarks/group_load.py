"""The load of groups: members that speak the protocol themselves, and consumers that commit offsets.

It runs in a process of its own. Members ask for a heartbeat every millisecond, and what they all say is encoded
once, so that it is the broker that is waited for.
"""

from __future__ import annotations

import select
import socket
import statistics
import struct
import time
import uuid
from functools import lru_cache
from typing import Any

from benchmarks import load
from benchmarks.brokers import HOST, TIMEOUT_S, Topic, ask
from benchmarks.load import Taken
from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MEMBERS = 20
_BEAT_S = 0.001
_COMMIT, _JOIN, _BEAT, _LEAVE, _SYNC = (8, 9), (11, 9), (12, 4), (13, 5), (14, 5)  # with their versions
_LENGTH = struct.Struct(">i")
# The generation is over; or, while the topic of groups is new, its partition has no leader yet.
_AGAIN = {
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
_PLACE = "?"
_SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def come(port: int, count: int) -> Taken:
    """New members all come at once, so many times over; the median time until all have their part."""
    taken = []
    for _ in range(count):
        group = _Group(port)
        taken.append(group.become_stable(group.members))
        group.end()
    return _median(taken)


def meet_again(port: int, count: int) -> Taken:
    """The leader of a stable group wants another round, and all others hear of it."""
    group = _Group(port)
    group.become_stable(group.members)
    taken = [group.become_stable([member for member in group.members if member.leads]) for _ in range(count)]
    group.end()
    return _median(taken)


def commit(topic: Topic, partitions: int, requests: int) -> Taken:
    """Each consumer of a group commits again when its last commit is answered."""
    entries = [
        OffsetCommitRequestPartition(partition_index=at, committed_offset=1 << 40) for at in range(partitions)
    ]
    request = OffsetCommitRequest(
        group_id=topic.name, topics=[OffsetCommitRequestTopic(name=topic.name, partitions=entries)]
    )
    deadline = time.monotonic() + TIMEOUT_S
    while any(entry.error_code for entry in ask(topic.port, *_COMMIT, request).topics[0].partitions):
        if time.monotonic() > deadline:
            raise RuntimeError("offsets cannot be committed")
        time.sleep(0.01)
    return load.repeat(topic.port, load.encoded(*_COMMIT, request), MEMBERS, 1, requests)


def _median(taken: list[Taken]) -> Taken:
    return Taken(*map(statistics.median, zip(*taken, strict=True)))


class _Group:
    """All members of a new group."""

    def __init__(self, port: int) -> None:
        self.name = f"bench-{uuid.uuid4().hex[:8]}"
        self.members = [_Member(port, self.name) for _ in range(MEMBERS)]
        self._by_socket = {member.socket: member for member in self.members}

    def become_stable(self, who: list[_Member]) -> Taken:
        """Let some of them join; until all are in one generation again."""
        cpu_before, before = time.process_time(), time.perf_counter()
        generation = self.members[0].synced
        for member in who:
            member.join()
        beat_due = before + _BEAT_S
        while not self._is_stable(generation):
            readable, _, _ = select.select(self._by_socket, [], [], _BEAT_S)
            for one in readable:
                self._by_socket[one].take()
            now = time.perf_counter()
            if now > beat_due:
                beat_due = now + _BEAT_S
                for member in self.members:
                    member.beat()
            if now - before > TIMEOUT_S:
                raise RuntimeError(f"{self.name} does not become stable")
        taken = Taken(time.perf_counter() - before, time.process_time() - cpu_before)
        for member in self.members:
            member.rest()
        return taken

    def _is_stable(self, before: int) -> bool:
        generations = {member.synced for member in self.members}
        return len(generations) == 1 and min(generations) > before

    def end(self) -> None:
        for member in self.members:
            member.leave()
            member.socket.close()


class _Member:
    """One connection, with one request under way at most."""

    def __init__(self, port: int, group: str) -> None:
        self.socket = socket.create_connection((HOST, port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._group = group
        self._id = ""
        self._generation = -1
        self.leads = False
        self.synced = -1  # the generation that it has its part of
        self._asked: tuple[int, int] | None = None

    def _ask(self, api: tuple[int, int], message: Message) -> None:
        self._send(api, load.encoded(*api, message))

    def _send(self, api: tuple[int, int], request: bytes) -> None:
        self.socket.sendall(request)
        self._asked = api

    def _answer(self) -> Any:
        assert self._asked is not None
        (size,) = _LENGTH.unpack(self.socket.recv(4, socket.MSG_WAITALL))
        return frame.decode_response(*self._asked, self.socket.recv(size, socket.MSG_WAITALL))[1]

    def join(self) -> None:
        self.synced = -1
        self._send(_JOIN, _filled(_join_request(self._group, len(self._id)), self._id))

    def beat(self) -> None:
        if self._asked is None and self.synced >= 0:
            request = HeartbeatRequest(
                group_id=self._group, generation_id=self._generation, member_id=self._id
            )
            self._ask(_BEAT, request)

    def rest(self) -> None:
        """Wait for the answer that is due: when all is stable, that of a heartbeat."""
        if self._asked is not None:
            self._answer()
            self._asked = None

    def take(self) -> None:
        """Take an answer, and go on."""
        api, answer = self._asked, self._answer()
        self._asked = None
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._id = answer.member_id
            self.join()
        elif answer.error_code in _AGAIN:
            self.join()
        elif answer.error_code:
            raise RuntimeError(f"error {answer.error_code}")
        elif api == _JOIN:
            self._id, self._generation = answer.member_id, answer.generation_id
            self.leads = answer.leader == self._id
            self._sync([member.member_id for member in answer.members])
        elif api == _SYNC:
            self.synced = self._generation

    def _sync(self, members: list[str]) -> None:
        if members:
            self._ask(_SYNC, _sync_message(self._group, self._generation, self._id, members))
        else:
            request = _sync_request(self._group, self._generation, len(self._id))
            self._send(_SYNC, _filled(request, self._id))

    def leave(self) -> None:
        self._ask(
            _LEAVE, LeaveGroupRequest(group_id=self._group, members=[MemberIdentity(member_id=self._id)])
        )
        self._answer()


@lru_cache
def _join_request(group: str, id_size: int) -> bytes:
    """For all members whose ids are so long; `_filled` puts the id in."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIPTION)]
    request = JoinGroupRequest(
        group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, member_id=_PLACE * id_size,
        protocol_type="consumer", protocols=protocols,
    )  # fmt: skip
    return load.encoded(*_JOIN, request)


@lru_cache
def _sync_request(group: str, generation: int, id_size: int) -> bytes:
    """The same for those who do not lead."""
    return load.encoded(*_SYNC, _sync_message(group, generation, _PLACE * id_size, []))


def _sync_message(group: str, generation: int, member_id: str, members: list[str]) -> SyncGroupRequest:
    assignments = [SyncGroupRequestAssignment(member_id=id_, assignment=b"part") for id_ in members]
    return SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member_id, protocol_type="consumer",
        protocol_name="range", assignments=assignments,
    )  # fmt: skip


def _filled(request: bytes, member_id: str) -> bytes:
    return request.replace(_PLACE.encode() * len(member_id), member_id.encode(), 1) if member_id else request
