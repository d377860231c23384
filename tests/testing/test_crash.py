"""The states that a power cut leaves: all that are legal at the corners, and none that are not."""

from __future__ import annotations

from random import Random
from typing import Any

from ottla.testing.crash import crash_state, crash_states, random_crash
from ottla.testing.disk import SimulatedDisk
from ottla.testing.history import History


def contents(history: History, **kwargs: Any) -> list[dict[str, bytes | None]]:
    return [state.image.contents() for state in crash_states(history, **kwargs)]


def at_end(history: History, samples: int = 50) -> list[dict[str, bytes | None]]:
    points = [len(history.operations)]
    return [state.image.contents() for state in crash_states(history, samples=samples, points=points)]


def disk_with(path: str, data: bytes) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.open(path, create=True).pwrite(data, 0)
    return disk


def test_what_was_there_at_the_start_is_there_in_every_state() -> None:
    disk = disk_with("/old", b"old")
    history = disk.record()
    disk.open("/new", create=True).pwrite(b"new", 0)
    assert all(state["/old"] == b"old" for state in contents(history))


def test_synced_bytes_survive_and_later_ones_may_be_lost_kept_or_torn() -> None:
    disk = disk_with("/f", b"")
    history = disk.record()
    file = disk.open("/f", write=True)
    file.pwrite(b"safe", 0)
    file.sync()
    file.pwrite(b"1234", 4)
    found = {state["/f"] for state in at_end(history)}
    assert all(data is not None and data[:4] == b"safe" for data in found)
    assert {b"safe", b"safe1234", b"safe1", b"safe12", b"safe\0\0\0\0", b"safe\0\x0034"} <= found


def test_a_later_write_may_survive_an_earlier_one_with_zeros_between() -> None:
    disk = disk_with("/f", b"")
    history = disk.record()
    file = disk.open("/f", write=True)
    file.pwrite(b"11", 0)
    file.pwrite(b"22", 2)
    file.pwrite(b"33", 4)
    assert {b"", b"11", b"22"[:0] + b"\0\x0022", b"11\0\x0033", b"\0\0\0\x0033", b"112233"} <= {
        state["/f"] for state in at_end(history)
    }


def test_a_lost_truncation_leaves_the_old_tail_behind_new_bytes() -> None:
    disk = disk_with("/f", b"abcdef")
    history = disk.record()
    file = disk.open("/f", write=True)
    file.truncate(2)
    file.pwrite(b"XY", 2)
    found = {state["/f"] for state in at_end(history)}
    assert {b"abcdef", b"ab", b"abXY", b"abXYef"} <= found


def test_a_synced_truncation_is_certain() -> None:
    disk = disk_with("/f", b"abcdef")
    history = disk.record()
    file = disk.open("/f", write=True)
    file.truncate(2)
    file.sync()
    assert at_end(history) == [{"/f": b"ab"}]


def test_long_writes_are_torn_at_sectors_of_the_disk() -> None:
    disk = disk_with("/f", bytes(100))
    history = disk.record()
    disk.open("/f", write=True).pwrite(b"x" * 1500, 100)
    sizes = {len(data) for state in at_end(history) if (data := state["/f"]) is not None}
    assert {100, 512, 1024, 1536, 1600} <= sizes


def test_a_synced_file_without_a_synced_directory_may_have_no_name() -> None:
    disk = SimulatedDisk()
    history = disk.record()
    file = disk.open("/f", create=True)
    file.pwrite(b"x", 0)
    file.sync()
    assert sorted(map(str, at_end(history))) == sorted(map(str, [{}, {"/f": b"x"}]))
    disk.sync_dir("/")
    assert at_end(history) == [{"/f": b"x"}]


def test_a_rename_may_be_there_before_the_bytes_of_the_file_and_never_leaves_two_names() -> None:
    disk = disk_with("/f", b"old")
    history = disk.record()
    temporary = disk.open("/f.tmp", create=True)
    temporary.pwrite(b"new", 0)
    disk.rename("/f.tmp", "/f")
    found = at_end(history)
    assert {"/f": b""} in found
    assert {"/f": b"new"} in found
    assert {"/f": b"old"} in found
    assert {"/f": b"old", "/f.tmp": b"new"} in found
    assert all("/f" in state for state in found)


def test_a_replaced_file_is_old_or_new_when_it_is_synced_before_the_rename() -> None:
    disk = disk_with("/f", b"old")
    history = disk.record()
    temporary = disk.open("/f.tmp", create=True)
    temporary.pwrite(b"new", 0)
    temporary.sync()
    disk.rename("/f.tmp", "/f")
    disk.sync_dir("/")
    assert {state["/f"] for state in contents(history)} == {b"old", b"new"}
    assert at_end(history) == [{"/f": b"new"}]


def test_names_of_one_directory_are_lost_from_the_end() -> None:
    disk = SimulatedDisk()
    history = disk.record()
    for name in "abc":
        disk.open(f"/{name}", create=True)
    assert sorted(map(sorted, at_end(history))) == [[], ["/a"], ["/a", "/b"], ["/a", "/b", "/c"]]


def test_directories_lose_their_names_independently() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/x")
    disk.make_dir("/y")
    history = disk.record()
    disk.open("/x/1", create=True)
    disk.open("/y/2", create=True)
    names = {frozenset(state) - {"/x", "/y"} for state in at_end(history)}
    assert names == {frozenset(), frozenset({"/x/1"}), frozenset({"/y/2"}), frozenset({"/x/1", "/y/2"})}


def test_names_in_a_directory_whose_own_name_is_lost_are_lost_with_it() -> None:
    disk = SimulatedDisk()
    history = disk.record()
    disk.make_dir("/d")
    disk.open("/d/f", create=True)
    disk.sync_dir("/d")
    assert {frozenset(state) for state in at_end(history)} == {frozenset(), frozenset({"/d", "/d/f"})}
    disk.sync_dir("/")
    assert {frozenset(state) for state in at_end(history)} == {frozenset({"/d", "/d/f"})}


def test_a_move_between_directories_leaves_exactly_one_name() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/x")
    disk.make_dir("/y")
    disk.open("/x/f", create=True)
    history = disk.record()
    disk.open("/y/earlier", create=True)
    disk.rename("/x/f", "/y/f")
    for state in at_end(history):
        assert ("/x/f" in state) != ("/y/f" in state)
        assert "/y/f" not in state or "/y/earlier" in state
    disk.sync_dir("/x")
    assert {frozenset(state) for state in at_end(history)} == {frozenset({"/x", "/y", "/y/f", "/y/earlier"})}


def test_a_lost_deletion_brings_the_file_back_with_its_bytes() -> None:
    disk = disk_with("/f", b"bytes")
    history = disk.record()
    disk.unlink("/f")
    assert sorted(at_end(history), key=len) == [{}, {"/f": b"bytes"}]


def test_states_are_distinct_for_each_promise() -> None:
    disk = disk_with("/f", b"x")
    history = disk.record()
    history.mark("one")
    history.mark("one")
    history.mark("two")
    assert [(state.point, state.label) for state in crash_states(history)] == [
        (0, None),
        (1, "one"),
        (3, "two"),
    ]


def busy_history() -> History:
    disk = SimulatedDisk()
    history = disk.record()
    for number in range(6):
        file = disk.open(f"/{number}", create=True)
        file.pwrite(bytes([65 + number]) * 700, 0)
        file.pwrite(b"tail", 700)
        if number % 2:
            file.sync()
        history.mark(number)
    disk.rename("/1", "/2")
    return history


def test_a_state_comes_back_by_its_name_and_seed() -> None:
    history = busy_history()
    states = list(crash_states(history, seed=7, samples=5))
    assert len(states) > 100
    for state in states[::17]:
        again = crash_state(history, state.name, seed=7, samples=5)
        assert again.image == state.image
        assert again.describe() == state.describe()
    assert [state.name for state in crash_states(history, seed=7, samples=5)] == [
        state.name for state in states
    ]


def test_another_seed_gives_other_samples() -> None:
    history = busy_history()
    one, two = ({str(state) for state in contents(history, seed=seed, samples=5)} for seed in (1, 2))
    assert one != two


def test_power_can_be_cut_now() -> None:
    history = busy_history()
    images = [random_crash(history, Random(seed)).contents() for seed in range(50)]
    assert len({str(image) for image in images}) > 20
    assert images[3] == random_crash(history, Random(3)).contents()
