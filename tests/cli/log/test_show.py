"""`ottla log show` on a terminal and in a pipe: order, scale, gaps, damage, what cannot be read, and what it reads."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from ottla.cli.log.drawing import By, Part, Scale
from ottla.cli.main import app
from ottla.logtools.index_files import load_index
from ottla.records.builder import NewRecord, build_batch
from ottla.storage import layout
from ottla.storage.fs import RealFileSystem
from ottla.storage.indexes.foreign_index import ForeignOffsetIndex, ForeignTimeIndex
from tests.cli.terminals import on_terminal
from tests.logtools.making import make_data_dir


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data_dir(tmp_path_factory.mktemp("show") / "data")


@pytest.fixture
def data(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "data"))


def show(*args: object) -> Result:
    return CliRunner().invoke(app, ["log", "show", *map(str, args)], prog_name="ottla")


def picture(*args: object) -> str:
    """What `--by` draws where no terminal is."""
    return show(*args, "--by", "offset").stdout


def segment_file(log: Path, base_offset: int) -> Path:
    return log / f"{base_offset:020d}.log"


# -- on a terminal


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_picture_fits_the_terminal_and_has_the_offsets(data: Path, width: int) -> None:
    for path in (data, data / "orders-0"):
        lines = on_terminal("log", "show", path, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert any("0..155" in line for line in lines)
        assert any("█" in line for line in lines)


def test_a_wide_terminal_shows_more_than_a_narrow_one(data: Path) -> None:
    narrow, wide = (on_terminal("log", "show", data / "orders-0", width=width) for width in (80, 200))
    assert "bytes/entry" not in narrow
    assert "bytes/entry" in wide


def test_colours_are_left_out_where_they_are_not_wanted(data: Path) -> None:
    assert "\x1b[" in on_terminal("log", "show", data, width=80, colour=True)
    assert "\x1b" not in on_terminal("log", "show", data, width=80)
    assert "\x1b" not in picture(data)


def test_empty_partitions_are_named_in_brief(data: Path) -> None:
    for number in (2, 3, 4, 10, 12):
        (data / f"orders-{number}").mkdir()
        segment_file(data / f"orders-{number}", 0).touch()
    assert "5 empty partitions: orders 2-4 10 12\n" in picture(data)
    names = [line.split()[0] for line in show(data).stdout.splitlines()[2:]]
    assert names == [f"orders-{number}" for number in (0, 1, 2, 3, 4, 10, 12)]


# -- to scale


@given(
    ends=st.lists(st.integers(0, 10**15), min_size=2, max_size=2, unique=True).map(sorted),
    places=st.lists(st.integers(0, 10**15), min_size=2, max_size=2).map(sorted),
    width=st.integers(1, 200),
)
def test_a_bar_begins_and_ends_where_its_share_of_the_whole_does(
    ends: list[int], places: list[int], width: int
) -> None:
    low, high = ends
    first, last = (min(max(place, low), high) for place in places)
    bar = Scale(By.OFFSET, low, high, width).bar([Part(first, last, "segment")])
    assert 1 <= len(bar) <= width
    begins, column = len(bar) - len(bar.lstrip()), (high - low + 1) / width
    assert abs(begins - (first - low) / column) <= 1
    assert abs(len(bar) - (last - low) / column) <= 1


def test_a_later_segment_is_drawn_further_to_the_right(pristine: Path) -> None:
    for by in By:
        text = show(pristine / "orders-0", "--by", by).stdout
        bars = [line.rindex(" " if "█" not in line else "█") for line in text.splitlines() if "█" in line]
        assert len(bars) == 4
        assert bars == sorted(set(bars))


def test_without_times_bars_are_long_by_offsets(tmp_path: Path) -> None:
    log = tmp_path / "old-0"
    log.mkdir()
    segment_file(log, 0).write_bytes(build_batch([NewRecord(-1, None, b"v", [])] * 7))
    assert re.search(r"^ +0 .* 0\.\.6 .*█", picture(log), re.MULTILINE)
    assert re.search(r"^segment .* 0 +6$", show(log, "--by", "time").stdout, re.MULTILINE)


# -- what is not whole


def test_a_missing_segment_is_a_gap_with_its_offsets(data: Path) -> None:
    segment_file(data / "orders-0", 42).unlink()
    text = picture(data / "orders-0")
    assert re.search(r"^ +gap +42\.\.85 .*╳", text, re.MULTILINE)
    assert "gap: offsets 42..85: between " in text
    assert "1 partition with gaps or damage" in picture(data)
    assert f"{2 * 156 - 44} offsets" in picture(data)
    assert re.search(r"^orders-0 .*█ *╳+▓?", picture(data), re.MULTILINE)
    (gap,) = json.loads(show(data / "orders-0", "--json").stdout)["breaks"]
    assert (gap["kind"], gap["first_offset"], gap["last_offset"]) == ("gap", 42, 85)
    assert re.search(r"^orders-0 .* 1 +0$", show(data).stdout, re.MULTILINE)


@pytest.mark.parametrize("how", ["deleted", "emptied", "zeroed"])
def test_an_end_that_the_recovery_point_knows_better_is_a_gap(data: Path, how: str) -> None:
    last = segment_file(data / "orders-1", 130)
    if how == "deleted":
        last.unlink()
    else:
        last.write_bytes(bytes(last.stat().st_size if how == "zeroed" else 0))
    text = picture(data)
    assert "orders-1: gap: offsets 130..155: the log reached offset 156 once" in " ".join(text.split())
    assert ("orders-1: damage: " in text) == (how == "zeroed")


def test_bytes_at_the_end_that_are_no_batches_are_damage(data: Path) -> None:
    with segment_file(data / "orders-0", 130).open("ab") as file:
        file.write(b"x" * 33)
    text = picture(data / "orders-0")
    assert "damage: " in text
    assert "33 bytes" in text
    assert "╳" in text


def test_a_flipped_bit_in_the_middle_is_seen_when_every_batch_is_read(data: Path) -> None:
    file = segment_file(data / "orders-0", 42)
    content = bytearray(file.read_bytes())
    content[300] ^= 1
    file.write_bytes(content)
    assert "damage" not in picture(data / "orders-0")
    text = picture(data / "orders-0", "--check")
    assert re.search(
        r"damage: 00000000000000000042\.log, offsets \d+\.\.\d+: .*checksum", " ".join(text.split())
    )
    assert any("╳" in line for line in text.splitlines() if line.split()[:1] == ["42"])
    assert "╳" not in picture(data / "orders-1", "--check")


@pytest.mark.parametrize("options", [(), ("--by", "time")])
def test_what_cannot_be_read_is_told_and_the_rest_is_shown(data: Path, options: tuple[str, ...]) -> None:
    log = segment_file(data / "orders-0", 42)
    log.unlink()
    log.mkdir()
    index = data / "orders-0" / f"{86:020d}{layout.TIME_INDEX}"
    index.unlink()
    index.mkdir()
    loop = segment_file(data / "orders-1", 86)
    loop.unlink()
    loop.symlink_to(loop)
    done = show(data, *options)
    assert done.exit_code == 1
    text = re.sub(r"\s", "", done.stdout)  # long paths go over several lines
    assert f"orders-0:unreadable:{log}:Isadirectory" in text
    assert f"orders-0:unreadable:{index}:Isadirectory" in text
    assert f"orders-1:unreadable:{loop}:Toomanylevelsofsymboliclinks" in text
    assert re.search(r"^orders-0 .*\b0(\.\.| +)155 ", done.stdout, re.MULTILINE)


# -- how much is read


def bytes_read() -> int:
    """By this process so far, as the operating system counts them."""
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text())[0])


def test_the_room_at_the_end_of_indexes_is_not_read(data: Path) -> None:
    for number in range(8):
        log = Path(shutil.copytree(data / "orders-0", data / f"more-{number}"))
        for suffix in (layout.INDEX, layout.TIME_INDEX):
            with (log / f"{130:020d}{suffix}").open("r+b") as file:
                file.truncate(10 << 20)
    show(data)
    before = bytes_read()
    rows = [line.split() for line in show(data).stdout.splitlines()]
    assert bytes_read() - before < 2 << 20
    assert [row[3:5] for row in rows if row[0].startswith("more")] == [["0", "155"]] * 8


@given(
    used=st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1)), max_size=40),
    room=st.integers(0, 40),
    odd=st.binary(max_size=7),
    suffix=st.sampled_from([layout.INDEX, layout.TIME_INDEX]),
)
def test_the_last_entry_is_found_by_halving(
    used: list[tuple[int, int]], room: int, odd: bytes, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    entry = struct.Struct(">ii" if suffix == layout.INDEX else ">qi")
    path = tmp_path_factory.getbasetemp() / f"index{suffix}"
    path.write_bytes(b"".join(entry.pack(*one) for one in used) + bytes(room * entry.size) + odd)
    fs = RealFileSystem()
    with (ForeignOffsetIndex if suffix == layout.INDEX else ForeignTimeIndex)(fs, str(path)) as found:
        assert (found.used(), found.last()) == (len(used), used[-1] if used else None)
    index = load_index(fs, str(path), suffix, 0)
    assert index is not None
    assert (index.entries, index.zeros) == (len(used), room)


@pytest.mark.parametrize("room", [0, 1, (1 << 16) - 8, 1 << 16, (1 << 16) + 8, 10 << 20])
def test_zeros_at_the_end_of_an_index_are_counted_whatever_their_number(tmp_path: Path, room: int) -> None:
    path = tmp_path / "index"
    path.write_bytes(struct.pack(">ii", 1, 2) * 3 + bytes(room // 8 * 8) + b"abc")
    index = load_index(RealFileSystem(), str(path), layout.INDEX, 0)
    assert index is not None
    assert (index.entries, index.zeros, index.odd_bytes) == (3, room // 8, 3)
