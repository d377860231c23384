"""A process full of group members that speak the protocol directly: they join, share, commit, and misbehave.

`python -m tests.reliability.group_member PLAN`: the plan (JSON) says where the broker is, who the members are and how
long their timeouts are. Everything that a member hears goes to the history file at once (group_history.py). When there
is a file of the name `calm`, members only do what they should.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import sys
import time
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import uvloop

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
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.reliability.group_history import BEAT, COMMIT, FETCH, JOIN, STRANGE, SYNC, TRYING, Event

TOPIC = "fire"
JOIN_VERSIONS, SYNC_VERSION, COMMIT_VERSION, FETCH_VERSION = (5, 7, 9), 5, 9, 9
RECONNECT_S = 0.05
LEAVE, VANISH, PAUSE, DOUBLE = "leave", "vanish", "pause", "double"
# The chance of each, between two heartbeats.
MISCHIEF = {LEAVE: 0.01, VANISH: 0.01, PAUSE: 0.015, DOUBLE: 0.02}

# Try again with the same id: the coordinator reads its log, or is not there for a moment.
_LATER = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
_OUT = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.MEMBER_ID_REQUIRED}
_AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}


@dataclass
class Plan:
    """What a process is to do."""

    port: int
    seed: str
    history: str
    calm: str
    members: list[tuple[str, str | None]]  # groups, and instance ids
    partitions: int
    session_ms: int
    rebalance_ms: int
    beat_s: float

    def text(self) -> str:
        return json.dumps(asdict(self))


class _FencedError(Exception):
    """Somebody else has this instance id now."""


class _RejoinError(Exception):
    """The generation is over."""


class Member:
    """One member, for as long as its process lives."""

    def __init__(self, process: Process, group: str, instance: str | None) -> None:
        self._process = process
        self._plan = process.plan
        self._rng = Random(process.rng.random())
        self.group = group
        self.instance = instance
        self._id = ""
        self._generation = -1
        self._owned: dict[int, int] = {}  # partitions, and the offset that was committed last
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self) -> None:
        joined = False
        with contextlib.suppress(_FencedError):
            while True:
                try:
                    if not joined:
                        await self._join()
                        joined = True
                    await self._work()
                    joined = False
                except _RejoinError:
                    joined = False
                except (OSError, EOFError):
                    # As a client would: the id and the generation stay, perhaps the broker knows them.
                    self._disconnect()
                    await asyncio.sleep(RECONNECT_S)
        self._disconnect()

    # -- the way in

    async def _join(self) -> None:
        """Until there is an assignment. Who joins has given up what it had."""
        self._owned = {}
        answer = await self._send_join()
        self._id, self._generation = answer.member_id, answer.generation_id
        is_leader = answer.leader == answer.member_id and not answer.skip_assignment
        assignments: list[SyncGroupRequestAssignment] = []
        if is_leader:
            ids = sorted(member.member_id for member in answer.members)
            assignments = [
                SyncGroupRequestAssignment(
                    member_id=id_, assignment=bytes(range(place, self._plan.partitions, len(ids)))
                )
                for place, id_ in enumerate(ids)
            ]
        request = SyncGroupRequest(
            group_id=self.group, generation_id=self._generation, member_id=self._id,
            group_instance_id=self.instance, protocol_type="consumer", protocol_name="range", assignments=assignments,
        )  # fmt: skip
        sent_ns = time.monotonic_ns()
        synced = await self._ask(SYNC_VERSION, request)
        given = tuple((partition, 0) for partition in synced.assignment)
        self._note(SYNC, sent_ns, synced.error_code, given)
        self._react(synced.error_code)
        self._owned = dict(given)
        await self._fetch()

    async def _send_join(self) -> Any:
        version = self._rng.choice(JOIN_VERSIONS)
        while True:
            request = JoinGroupRequest(
                group_id=self.group, session_timeout_ms=self._plan.session_ms,
                rebalance_timeout_ms=self._plan.rebalance_ms, member_id=self._id, group_instance_id=self.instance,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIPTION)],
            )  # fmt: skip
            sent_ns = time.monotonic_ns()
            answer = await self._ask(version, request)
            if answer.error_code == 0:
                self._id, self._generation = answer.member_id, answer.generation_id
                self._note(JOIN, sent_ns, 0)
                return answer
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._id = answer.member_id
                continue
            with contextlib.suppress(_RejoinError):
                self._react(answer.error_code)
            await asyncio.sleep(RECONNECT_S)

    async def _fetch(self) -> None:
        """Where to go on."""
        if not self._owned:
            return
        wanted = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(self._owned))]
        group = OffsetFetchRequestGroup(group_id=self.group, topics=wanted)
        sent_ns = time.monotonic_ns()
        (found,) = (await self._ask(FETCH_VERSION, OffsetFetchRequest(groups=[group]))).groups
        offsets = [(p.partition_index, p.committed_offset) for t in found.topics for p in t.partitions]
        self._note(FETCH, sent_ns, found.error_code, tuple(offsets))
        self._react(found.error_code)
        self._owned = dict(offsets)

    # -- what members do, and what they should not

    async def _work(self) -> None:
        """Until the generation ends, or the member goes."""
        while True:
            await asyncio.sleep(self._plan.beat_s * self._rng.uniform(0.7, 1.3))
            if await self._is_up_to_mischief():
                return
            sent_ns = time.monotonic_ns()
            request = HeartbeatRequest(
                group_id=self.group, generation_id=self._generation, member_id=self._id,
                group_instance_id=self.instance,
            )  # fmt: skip
            code = (await self._ask(4, request)).error_code
            self._note(BEAT, sent_ns, code)
            self._react(code)
            if self._owned:
                await self._commit()

    async def _commit(self) -> None:
        places = tuple((partition, offset + 1) for partition, offset in self._owned.items())
        sent_ns = time.monotonic_ns()
        self._note(TRYING, sent_ns, 0, places)
        # Also if the answer never comes: a value is not used for two commits.
        self._owned = dict(places)
        partitions = [
            OffsetCommitRequestPartition(partition_index=at, committed_offset=o) for at, o in places
        ]
        request = OffsetCommitRequest(
            group_id=self.group, generation_id_or_member_epoch=self._generation, member_id=self._id,
            group_instance_id=self.instance,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
        )  # fmt: skip
        answer = await self._ask(COMMIT_VERSION, request)
        codes = {p.error_code for topic in answer.topics for p in topic.partitions}
        code = codes.pop() if len(codes) == 1 else -1
        self._note(COMMIT, sent_ns, code, places)
        self._react(code)

    async def _is_up_to_mischief(self) -> bool:
        """Whether the member is gone now."""
        if self._process.is_calm:
            return False
        (what,) = self._rng.choices([*MISCHIEF, ""], [*MISCHIEF.values(), 1 - sum(MISCHIEF.values())])
        if what == LEAVE:
            members = [MemberIdentity(member_id=self._id, group_instance_id=self.instance)]
            await self._ask(5, LeaveGroupRequest(group_id=self.group, members=members))
            self._id = ""
            return True
        if what == VANISH:
            self._disconnect()
            self._id = ""
            return True
        if what == PAUSE:
            # It comes back as if nothing had happened, and commits first of all.
            await asyncio.sleep(self._plan.session_ms / 1000 * self._rng.uniform(1.2, 2))
            if self._owned:
                await self._commit()
        elif what == DOUBLE and self.instance is not None:
            self._process.start(self.group, self.instance)
        return False

    # -- answers

    def _react(self, code: int) -> None:
        if code == 0:
            return
        if code == ErrorCode.FENCED_INSTANCE_ID:
            raise _FencedError
        if code in _LATER:
            raise ConnectionError(f"error {code}")
        if code in _OUT:
            self._id = ""
        elif code not in _AGAIN:
            self._note(STRANGE, time.monotonic_ns(), code)
        raise _RejoinError

    def _note(self, kind: str, sent_ns: int, code: int, places: tuple[tuple[int, int], ...] = ()) -> None:
        event = Event(
            self.group, self._id, self.instance, kind, self._generation, sent_ns, time.monotonic_ns(), code, places
        )  # fmt: skip
        os.write(self._process.history, event.line())

    # -- the wire

    async def _ask(self, version: int, request: Message) -> Any:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._plan.port)
        reader, writer = self._streams
        writer.writelines(frame.request_parts(request.API_KEY, version, 1, self.group, request))
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return frame.decode_response(request.API_KEY, version, await reader.readexactly(size))[1]

    def _disconnect(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Process:
    """All members of this process."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = Random(plan.seed)
        self.history = os.open(plan.history, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._tasks: dict[asyncio.Task[None], tuple[str, str | None]] = {}

    def start(self, group: str, instance: str | None) -> None:
        task = asyncio.get_running_loop().create_task(Member(self, group, instance).run())
        self._tasks[task] = (group, instance)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        who = self._tasks.pop(task)
        if task.cancelled():
            return
        task.result()  # a member that fails is a defect of this file
        # It was fenced. If the broker died before it had written down who did that, nobody has the name now.
        if who not in self._tasks.values():
            self.start(*who)

    async def run(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_die)
        for group, instance in self.plan.members:
            self.start(group, instance)
        await asyncio.get_running_loop().create_future()

    @property
    def is_calm(self) -> bool:
        return os.path.exists(self.plan.calm)


def _die(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    loop.default_exception_handler(context)
    os._exit(3)


_SUBSCRIPTION = b"\0\0\0\0\0\1" + len(TOPIC).to_bytes(2, "big") + TOPIC.encode() + b"\xff\xff\xff\xff"

if __name__ == "__main__":
    uvloop.run(Process(Plan(**json.loads(sys.argv[1]))).run())
