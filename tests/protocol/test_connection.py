"""A stream of bytes is cut into the same frames however it arrives, in bounded memory."""

from __future__ import annotations

import random
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.buffers import SHARED_BYTES, MemoryBudget, ReceiveBuffers
from ottla.protocol.connection import FrameReader, ProtocolError

MAX_FRAME_BYTES = 100 << 20
BUDGET_BYTES = 128 << 20


def make_buffers(limit_bytes: int = BUDGET_BYTES, largest_bytes: int = MAX_FRAME_BYTES) -> ReceiveBuffers:
    return ReceiveBuffers(MemoryBudget(limit_bytes, largest_bytes))


class Peer:
    """One end of a connection: sends bytes, and has the frames that the reader at the other end cut out of them."""

    def __init__(self, buffers: ReceiveBuffers, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.frames: list[bytes] = []
        self.rooms = 0
        self.reader = FrameReader(buffers, max_frame_bytes, self.on_room)

    def on_room(self) -> None:
        self.rooms += 1

    def send(self, data: bytes | memoryview, at_most: int = sys.maxsize) -> int:
        """One receive; returns how many bytes were taken."""
        window = self.reader.get_buffer()
        size = min(len(window), len(data), at_most)
        window[:size] = data[:size]
        self.reader.buffer_updated(size)
        self.take_frames()
        return size

    def send_all(self, data: bytes) -> int:
        """As many receives as it takes, or until memory is short; returns how many bytes were taken."""
        view = memoryview(data)
        sent = 0
        while sent < len(data) and not self.reader.is_starved:
            sent += self.send(view[sent:])
        return sent

    def take_frames(self) -> None:
        while (frame := self.reader.next_frame()) is not None:
            assert not frame.readonly
            self.frames.append(bytes(frame))


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


@given(
    payloads=st.lists(st.binary(max_size=40), max_size=8),
    cuts=st.lists(st.integers(1, 30), min_size=1, max_size=20),
)
def test_small_frames_are_the_same_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    buffers = make_buffers()
    peer = Peer(buffers)
    data = memoryview(framed(*payloads))
    turn = 0
    while data:
        data = data[peer.send(data, cuts[turn % len(cuts)]) :]
        turn += 1
    assert peer.frames == payloads
    assert not peer.reader.is_partial
    assert buffers.budget.used_bytes == 0


@pytest.mark.parametrize("seed", range(40))
def test_connections_that_take_turns_get_their_own_frames(seed: int) -> None:
    """Sizes around every threshold, three connections that share the buffer, readers that park in between."""
    rng = random.Random(seed)
    sizes = [0, 1, 3, 4096, 20_000, 70_000, 300_000, SHARED_BYTES - 4, SHARED_BYTES, 3_000_000]
    buffers = make_buffers()
    peers = [Peer(buffers) for _ in range(3)]
    payloads = [[rng.randbytes(rng.choice(sizes)) for _ in range(rng.randrange(1, 6))] for _ in peers]
    streams = [memoryview(framed(*each)) for each in payloads]
    while any(streams):
        turn = rng.choice([i for i, stream in enumerate(streams) if stream])
        sent = peers[turn].send(streams[turn], rng.choice([1, 7, 5000, 100_000, sys.maxsize]))
        streams[turn] = streams[turn][sent:]
    assert [peer.frames for peer in peers] == payloads
    assert buffers.budget.used_bytes == 0


def test_a_session_may_stop_in_the_middle_and_go_on_later() -> None:
    buffers = make_buffers()
    peer, other = Peer(buffers), Peer(buffers)
    data = framed(b"first", b"second", b"third")[:-2]
    window = peer.reader.get_buffer()
    window[: len(data)] = data
    peer.reader.buffer_updated(len(data))
    assert bytes(peer.reader.next_frame() or b"") == b"first"
    peer.reader.park()
    other.send(b"\0" * 100)  # overwrites what they share
    assert buffers.budget.used_bytes > 0
    peer.take_frames()
    peer.send(b"rd")
    assert peer.frames == [b"second", b"third"]


def test_a_frame_can_be_patched_in_place() -> None:
    peer = Peer(make_buffers())
    data = framed(b"abc")
    peer.reader.get_buffer()[: len(data)] = data
    peer.reader.buffer_updated(len(data))
    frame = peer.reader.next_frame()
    assert frame is not None
    frame[0] = ord("X")
    assert bytes(frame) == b"Xbc"


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (-1, "not Kafka's protocol"),
        (-(2**31), "not Kafka's protocol"),
        (MAX_FRAME_BYTES + 1, "larger than socket.request.max.bytes"),
        (2**31 - 1, "larger than socket.request.max.bytes"),
    ],
)
def test_a_length_that_cannot_be_is_refused_at_once(length: int, text: str) -> None:
    buffers = make_buffers()
    peer = Peer(buffers)
    with pytest.raises(ProtocolError, match=text):
        peer.send(struct.pack(">i", length))
    peer.reader.close()
    assert buffers.budget.used_bytes == 0


def test_a_frame_that_could_never_fit_the_budget_is_refused() -> None:
    peer = Peer(make_buffers(limit_bytes=1 << 20, largest_bytes=1 << 20))
    with pytest.raises(ProtocolError, match="larger"):
        peer.send(struct.pack(">i", (1 << 20) + 1))


def test_what_a_length_claims_allocates_nothing() -> None:
    buffers = make_buffers()
    peer = Peer(buffers)
    peer.send(struct.pack(">i", MAX_FRAME_BYTES))
    assert peer.reader.is_partial
    assert buffers.budget.used_bytes <= 16 << 10
    for _ in range(100):
        peer.send(b"x")
    assert buffers.budget.used_bytes <= 16 << 10


def test_memory_grows_with_what_has_arrived() -> None:
    buffers = make_buffers()
    peer = Peer(buffers)
    payload = bytes(20 << 20)
    data = memoryview(framed(payload))
    sent = 0
    while sent < len(data) - 1:
        sent += peer.send(data[sent:-1], 300_000)
        assert buffers.budget.used_bytes <= 4 * sent + (256 << 10)
        if sent > 10 << 20:
            assert buffers.budget.used_bytes <= sent + (1 << 20)
    peer.send(data[sent:])
    assert peer.frames == [payload]
    assert buffers.budget.used_bytes == 0


def test_an_idle_connection_holds_no_buffer() -> None:
    buffers = make_buffers()
    peers = [Peer(buffers) for _ in range(1000)]
    for peer in peers:
        peer.send(framed(b"hello"))
    assert buffers.budget.used_bytes == 0
    assert sys.getsizeof(peers[0].reader) < 200


def test_a_buffer_that_is_given_back_serves_the_next_frame() -> None:
    buffers = make_buffers()
    first, second = Peer(buffers), Peer(buffers)
    data = framed(bytes(300_000))
    first.send(data, 200_000)
    window = first.reader.get_buffer()
    first.send_all(data[200_000:])
    second.send(data, 200_000)
    assert second.reader.get_buffer().obj is window.obj


# -- when memory is short

SMALL = 64 << 10
LIMIT = 2 << 20
LARGEST = 512 << 10


def fill(buffers: ReceiveBuffers) -> list[Peer]:
    """Connections with unfinished frames that hold all that is common to them, and no loan."""
    peers = []
    while buffers.budget.has_room(SMALL):
        peer = Peer(buffers, LARGEST)
        peer.send(framed(bytes(SMALL - 4)), SMALL // 2)
        peers.append(peer)
    return peers


def test_a_connection_that_does_not_fit_waits_and_goes_on_when_there_is_room() -> None:
    buffers = make_buffers(LIMIT, LARGEST)
    holders = fill(buffers)
    borrower, waiting = Peer(buffers, LARGEST), Peer(buffers, LARGEST)
    payload = bytes(100_000)
    borrower.send(framed(payload))
    assert not borrower.reader.is_starved
    data = framed(payload)
    sent = waiting.send_all(data)
    assert waiting.reader.is_starved
    assert sent <= 4096  # only a small window is read while memory is short
    assert waiting.rooms == 0
    for peer in holders:
        peer.reader.close()
    assert waiting.rooms == 1
    assert not waiting.reader.is_starved
    waiting.send_all(data[sent:])
    assert waiting.frames == [payload]


def test_waiting_connections_go_on_in_the_order_they_came() -> None:
    buffers = make_buffers(LIMIT, LARGEST)
    holders = fill(buffers)
    holders.append(Peer(buffers, LARGEST))
    holders[-1].send(framed(bytes(SMALL + 1)))  # has the loan
    waiting = [Peer(buffers, LARGEST) for _ in range(5)]
    for peer in waiting:
        peer.send(framed(bytes(200_000)))
        assert peer.reader.is_starved
    seen: list[int] = []
    for peer in holders:
        peer.reader.close()
        seen += [i for i, each in enumerate(waiting) if each.rooms and i not in seen]
    while len(seen) < 5:
        waiting[seen[-1]].reader.close()
        seen += [i for i, each in enumerate(waiting) if each.rooms and i not in seen]
    assert seen == sorted(seen)


def test_connections_that_each_hold_a_part_do_not_wait_for_each_other_for_ever() -> None:
    buffers = make_buffers(LIMIT, LARGEST)
    payload = random.Random(1).randbytes(LARGEST)
    data = framed(payload)
    peers = [Peer(buffers, LARGEST) for _ in range(20)]
    sent = [0] * len(peers)
    for _ in range(10_000):
        if all(peer.frames for peer in peers):
            break
        for i, peer in enumerate(peers):
            if sent[i] < len(data) and not peer.reader.is_starved:
                sent[i] += peer.send(memoryview(data)[sent[i] :], 10_000)
        # What was read before it was known that memory is short comes on top: a small window per connection.
        assert buffers.budget.used_bytes <= LIMIT + len(peers) * 4096 + 10_000
    assert [peer.frames for peer in peers] == [[payload]] * len(peers)
    assert buffers.budget.used_bytes == 0


def test_small_requests_pass_while_memory_is_short() -> None:
    buffers = make_buffers(LIMIT, LARGEST)
    fill(buffers)
    peer = Peer(buffers, LARGEST)
    peer.send_all(framed(b"a", b"b" * 1000, b"c") * 50)
    assert len(peer.frames) == 150


def test_a_waiting_connection_that_closes_leaves_the_queue() -> None:
    buffers = make_buffers(LIMIT, LARGEST)
    holders = fill(buffers)
    holders.append(Peer(buffers, LARGEST))
    holders[-1].send(framed(bytes(SMALL + 1)))
    gone, stays = Peer(buffers, LARGEST), Peer(buffers, LARGEST)
    for peer in (gone, stays):
        peer.send(framed(bytes(100_000)))
        assert peer.reader.is_starved
    gone.reader.close()
    for peer in holders:
        peer.reader.close()
    assert (gone.rooms, stays.rooms) == (0, 1)
    stays.reader.close()
    assert buffers.budget.used_bytes == 0


def test_many_that_wait_are_admitted_without_deep_recursion() -> None:
    buffers = make_buffers(64 << 20, 1 << 20)
    holder = Peer(buffers)
    buffers.budget.take(buffers.budget.limit_bytes)
    holder.send(framed(bytes(50_000)))
    waiting = [Peer(buffers) for _ in range(3000)]
    for peer in waiting:
        peer.send(framed(bytes(5000)), 4096)
        assert peer.reader.is_starved
    buffers.budget.used_bytes -= buffers.budget.limit_bytes
    holder.reader.close()
    assert all(peer.rooms == 1 for peer in waiting)


def test_small_frames_have_memory_of_their_own() -> None:
    buffers = make_buffers(100 << 20, 8 << 20)
    greedy = [Peer(buffers, 8 << 20) for _ in range(40)]
    for peer in greedy:
        peer.send_all(framed(bytes(8 << 20))[: 7 << 20])
    assert not buffers.budget.has_room(1)
    small = Peer(buffers, LARGEST)
    small.send_all(framed(bytes(SMALL - 4)))
    assert small.frames == [bytes(SMALL - 4)]


def test_who_holds_much_leaves_room_for_others() -> None:
    buffers = make_buffers(100 << 20, 8 << 20)
    greedy = [Peer(buffers, 8 << 20) for _ in range(8)]
    for peer in greedy:
        peer.send_all(framed(bytes(8 << 20))[: 7 << 20])
    assert buffers.budget.is_wanted
    usual = Peer(buffers, 8 << 20)
    usual.send_all(framed(bytes(1 << 20)))
    assert usual.frames == [bytes(1 << 20)]


_SHORT_OF_MEMORY = """
import resource
from ottla.protocol.buffers import MemoryBudget, ReceiveBuffers
from ottla.protocol.connection import FrameReader, ProtocolError

def use(reader, data):
    try:
        while data:
            room = reader.get_buffer()[: len(data)]
            room[:] = data[: len(room)]
            reader.buffer_updated(len(room))
            data = data[len(room) :]
            while reader.next_frame() is not None:
                pass
            if reader.is_starved:
                return "starved"
    except ProtocolError as error:
        return str(error)
    return "ok"

budget = MemoryBudget(64 << 20, 30 << 20)
buffers = ReceiveBuffers(budget)
frame = (20 << 20).to_bytes(4, "big") + bytes(20 << 20)
first, second = (FrameReader(buffers, 30 << 20, lambda: None) for _ in range(2))
print(use(first, memoryview(frame)[: 18 << 20]))
print(use(second, memoryview(frame)[: 18 << 20]))
third = FrameReader(buffers, 30 << 20, lambda: None)
part = memoryview((2 << 20).to_bytes(4, "big") + bytes(1 << 20))
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 20), -1))
print(use(third, part))
third.close()
first.close()  # the second is granted what it waited for, and there is none
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(use(second, b"x" * 10))
second.close()
print(budget.used_bytes, budget.is_wanted)
print(use(first, frame))
"""


def test_memory_that_the_system_does_not_have_is_not_charged() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _SHORT_OF_MEMORY], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.stderr == ""
    print(run.stdout)
    lines = run.stdout.splitlines()
    assert lines[2].startswith("the system has no memory for a request of")
    assert lines[-2:] == ["0 False", "ok"]
