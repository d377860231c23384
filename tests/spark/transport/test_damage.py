"""Torn and corrupt batches: an error that says where, or set aside once, whatever the splits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.records.batch import write_crc
from ottla.records.compression.codec import Codec
from ottla.spark.read import plan
from ottla.spark.read.loss import BadBatchError
from ottla.storage.layout import LOG, segment_file
from tests.spark.making import append_batches, options_for, read_all


def _damage(directory: Path, offset: int) -> tuple[Path, int, int]:
    """Spoil the batch of that offset (ten a batch, all of one size but for digits); its file, position and size."""
    path = directory / segment_file(0, LOG)
    data = bytearray(path.read_bytes())
    position = 0
    while True:
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        if int.from_bytes(data[position : position + 8], "big") == offset:
            break
        position += size
    data[position + 85] ^= 0xFF
    path.write_bytes(data)
    return path, position, size


@pytest.mark.parametrize("size", ["1", "64m"])
def test_a_corrupt_batch_stops_a_read_with_file_position_and_offset(tmp_path: Path, size: str) -> None:
    append_batches(tmp_path / "t-0", 0, 100).index(interval=100)
    path, position, _ = _damage(tmp_path / "t-0", 50)
    with pytest.raises(BadBatchError) as caught:
        read_all(options_for(tmp_path, targetBytesPerPartition=size))
    assert f"{path}: at position {position}, offset 50: the checksum does not match" in str(caught.value)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("size", ["1", "300", "64m"])
def test_permissive_puts_it_into_one_row_and_goes_on(tmp_path: Path, size: str, codec: Codec) -> None:
    append_batches(tmp_path / "t-0", 0, 100, codec=codec).index(interval=100)
    path, position, bad_size = _damage(tmp_path / "t-0", 50)
    rows = read_all(options_for(tmp_path, targetBytesPerPartition=size, mode="permissive"))
    bad = [row for row in rows if row["corrupt"] is not None]
    assert [row["offset"] for row in rows] == [*range(50), 50, *range(60, 100)]
    assert len(bad) == 1
    assert bad[0]["corrupt"] == path.read_bytes()[position : position + bad_size]
    assert (bad[0]["topic"], bad[0]["value"]) == ("t", None)


def test_a_read_that_begins_behind_the_damage_does_not_see_it(tmp_path: Path) -> None:
    # The only place to begin is the file's start.
    append_batches(tmp_path / "t-0", 0, 100).index(interval=10_000)
    _damage(tmp_path / "t-0", 50)
    rows = read_all(options_for(tmp_path, startingOffsets='{"t": {"0": 60}}'))
    assert [row["offset"] for row in rows] == list(range(60, 100))


def test_quarantined_bytes_lie_in_files_that_say_what_they_were(tmp_path: Path) -> None:
    append_batches(tmp_path / "data" / "t-0", 0, 100).index(interval=100)
    path, position, bad_size = _damage(tmp_path / "data" / "t-0", 50)
    away = tmp_path / "away"
    options = options_for(
        tmp_path / "data", targetBytesPerPartition="1", mode="permissive", quarantinePath=str(away)
    )
    assert "corrupt" not in plan.arrow_schema(options).names
    assert [row["offset"] for row in read_all(options)] == [*range(50), *range(60, 100)]
    names = sorted(found.name for found in (away / "t-0").iterdir())
    assert names == [f"{path.name}-{position}.bin", f"{path.name}-{position}.json"]
    assert (away / "t-0" / names[0]).read_bytes() == path.read_bytes()[position : position + bad_size]
    about = json.loads((away / "t-0" / names[1]).read_text())
    assert (about["offset"], about["position"], about["where"]) == (50, position, str(path))


def test_a_torn_tail_is_where_an_unused_log_ends(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 100)
    path = tmp_path / "t-0" / segment_file(0, LOG)
    path.write_bytes(path.read_bytes()[:-7])
    assert [row["offset"] for row in read_all(options_for(tmp_path))] == list(range(90))


def test_malformed_records_under_a_good_checksum_are_reported(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 30, codec=Codec.GZIP)
    path, position, size = _damage(tmp_path / "t-0", 10)
    data = bytearray(path.read_bytes())
    write_crc(data, position, size)
    path.write_bytes(data)
    with pytest.raises(BadBatchError, match=f"at position {position}, offset 10: gzip"):
        read_all(options_for(tmp_path))
    rows = read_all(options_for(tmp_path, mode="permissive"))
    assert [row["offset"] for row in rows if row["corrupt"] is None] == [*range(10), *range(20, 30)]


def _misplace(directory: Path, offset: int, wrong: int) -> tuple[int, bytes]:
    """Give the batch of that offset another one; its position and bytes."""
    path, position, size = _damage(directory, offset)
    data = bytearray(path.read_bytes())
    data[position + 85] ^= 0xFF  # as it was
    data[position : position + 8] = wrong.to_bytes(8, "big")
    path.write_bytes(data)
    return position, bytes(data[position : position + size])


@pytest.mark.parametrize("size", ["1", "64m"])
@pytest.mark.parametrize("wrong", [3, 43, 57, 60, 2**40])
def test_a_base_offset_that_cannot_be_is_damage_though_the_checksum_matches(
    tmp_path: Path, size: str, wrong: int
) -> None:
    append_batches(tmp_path / "t-0", 0, 100).index(interval=100)
    position, data = _misplace(tmp_path / "t-0", 50, wrong)
    with pytest.raises(BadBatchError, match=f"at position {position}, offset 50: the offsets make no sense"):
        read_all(options_for(tmp_path, targetBytesPerPartition=size))
    rows = read_all(options_for(tmp_path, targetBytesPerPartition=size, mode="permissive"))
    assert [row["offset"] for row in rows] == [*range(50), 50, *range(60, 100)]
    assert [row["corrupt"] for row in rows if row["corrupt"] is not None] == [data]


def test_the_last_offset_of_a_segment_lies_before_the_next_one(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 30)
    append_batches(tmp_path / "t-0", 30, 30, new_segment=True)
    position, _ = _misplace(tmp_path / "t-0", 20, 40)
    with pytest.raises(BadBatchError, match=f"at position {position}, offset 20: the offsets make no sense"):
        read_all(options_for(tmp_path))
    rows = read_all(options_for(tmp_path, mode="permissive"))
    assert [row["offset"] for row in rows if row["corrupt"] is None] == [*range(20), *range(30, 60)]
