"""Dump: the batches and records that Kafka itself reads, and no more of the files than a query needs."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.config import LogConfig
from ottla.logtools.dump import FoundBatch, FoundDamage, Query, dump_batches, dump_records
from ottla.logtools.listing import Partition, list_partition, resolve
from ottla.records import batch, kernel
from ottla.records.builder import build_batch
from ottla.records.compression.codec import Codec
from ottla.records.record import Record
from ottla.storage.fs import RealFile, RealFileSystem
from ottla.testing.runtime import START_MS
from tests import corpus
from tests.logtools.making import ORDERS, open_manager, records

FS = RealFileSystem()


def read(path: Path, query: Query | None = None, fs: RealFileSystem = FS) -> list[Record]:
    found = list(dump_records(fs, list_partition(fs, str(path)), query or Query()))
    assert not [f for f in found if isinstance(f, FoundDamage)]
    return [f[1] for f in found if not isinstance(f, FoundDamage)]


def rows(path: Path, query: Query | None = None) -> list[list[int]]:
    found = dump_batches(FS, list_partition(FS, str(path)), query or Query())
    return [f.row.tolist() for f in found if isinstance(f, FoundBatch)]


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


@pytest.mark.parametrize("name", corpus.NAMES)
def test_records_are_those_that_kafka_reads(kafka_dirs: dict[str, Path], name: str) -> None:
    for partition, expected in corpus.expected(name).items():
        wanted = [
            (
                record["offset"],
                record["timestamp"],
                decoded(record["key"]),
                decoded(record["value"]),
                [(header[0].encode(), decoded(header[1])) for header in headers(record)],
            )
            for record in expected["records"]
        ]
        query = Query(from_offset=expected["start"], to_offset=expected["end"])
        found: list[tuple[Any, ...]] = [tuple(record) for record in read(kafka_dirs[name] / partition, query)]
        offsets = {record[0] for record in wanted}
        assert [record for record in found if record[0] in offsets] == wanted, partition
        controls = [record for record in found if record[0] not in offsets]
        assert all(key is not None and len(key) == 4 for _, _, key, _, _ in controls), partition


def headers(record: dict[str, Any]) -> list[Any]:
    return [list(header.values()) if isinstance(header, dict) else header for header in record["headers"]]


@pytest.mark.parametrize("name", corpus.NAMES)
def test_batches_are_those_that_kafka_prints(kafka_dirs: dict[str, Path], name: str) -> None:
    for partition, expected in corpus.expected(name).items():
        found = rows(kafka_dirs[name] / partition)
        printed = expected["batches"]
        assert [row[kernel.POSITION] for row in found] == [b["position"] for b in printed], partition
        for row, told in zip(found, printed, strict=True):
            assert row[kernel.SIZE] == told["size"]
            assert row[kernel.MAGIC] == told["magic"]
            assert row[kernel.CRC] == told["crc"]
            assert row[kernel.LAST_OFFSET] == told.get("lastOffset", told.get("offset"))
            if row[kernel.MAGIC] == batch.MAGIC_V2:
                assert row[kernel.BASE_OFFSET] == told["baseOffset"]
                assert row[kernel.COUNT] == told["count"]
                assert row[kernel.PRODUCER_ID] == told["producerId"]
                assert row[kernel.BASE_SEQUENCE] == told["baseSequence"]
                assert row[kernel.LEADER_EPOCH] == told["partitionLeaderEpoch"]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments of about 500 KB, an index entry every 4 KiB."""
    path = tmp_path_factory.mktemp("large")
    manager = open_manager(path, LogConfig(internal_segment_bytes=500_000, segment_index_bytes=1 << 20))
    log = manager.get_or_create(ORDERS)
    for number in range(9000):
        log.append_as_leader(build_batch(records(number, 2)), 0)
    assert len(log.segments) == 3
    manager.close()
    return path / "orders-0"


@pytest.fixture(scope="module")
def everything(large: Path) -> list[Record]:
    found = read(large)
    assert [record.offset for record in found] == list(range(18_000))
    return found


class Counting(RealFileSystem):
    """Counts what is read from log files."""

    def __init__(self) -> None:
        self.read = 0
        self.opened: list[str] = []

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        self.opened.append(path)
        counting = self

        class File(RealFile):
            def pread(self, size: int, position: int) -> bytes:
                counting.read += size
                return super().pread(size, position)

            def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
                counting.read += len(buffer)
                return super().pread_into(buffer, position)

        opened = super().open(path, write=write, create=create)
        return File(path, os.dup(opened._fd))


@pytest.mark.parametrize(
    "query",
    [
        Query(from_offset=100, to_offset=107),
        Query(from_offset=17_995),
        Query(from_offset=9_001, to_offset=9_002),
        Query(from_ms=START_MS + 89_900),
        Query(from_ms=START_MS + 45_000, to_ms=START_MS + 45_011),
        Query(to_ms=START_MS + 25),
        Query(from_offset=50, to_offset=5000, key=b"key-1", to_ms=START_MS + 900),
        Query(from_offset=99_999),
        Query(from_offset=5, to_offset=5),
    ],
)
def test_a_query_gives_what_a_filter_over_everything_gives(
    large: Path, everything: list[Record], query: Query
) -> None:
    assert read(large, query) == [record for record in everything if query.wants(record)]


@pytest.mark.parametrize(
    "query",
    [Query(from_offset=17_990), Query(from_ms=START_MS + 89_950), Query(from_offset=9000, to_offset=9004)],
)
def test_a_query_reads_little_more_than_what_it_gives(large: Path, query: Query) -> None:
    fs = Counting()
    assert read(large, query, fs)
    assert len([path for path in fs.opened if path.endswith(".log")]) == 1
    segment = max(path.stat().st_size for path in large.glob("*.log"))
    if query.to_offset > 18_000:  # towards the end there is little to read at all
        assert fs.read < 20_000
    else:
        assert fs.read <= segment + 100_000


def test_a_broken_index_only_costs_time(large: Path, tmp_path: Path) -> None:
    copy = tmp_path / "orders-0"
    copy.mkdir()
    for path in large.iterdir():
        data = path.read_bytes()
        (copy / path.name).write_bytes(b"\0\0\0\7\0\0\0\5" * 50 if path.suffix == ".index" else data)
    query = Query(from_offset=17_990)
    assert read(copy, query) == read(large, query)


def test_batches_are_wanted_by_what_is_in_them(large: Path) -> None:
    assert [row[kernel.BASE_OFFSET] for row in rows(large, Query(from_offset=101, to_offset=104))] == [
        100,
        102,
    ]
    with_key = rows(large, Query(from_offset=0, to_offset=12, key=b"key-1"))
    assert [row[kernel.BASE_OFFSET] for row in with_key] == [2, 8]


def test_what_is_damaged_comes_out_as_damage_and_the_rest_still_comes(log_dir: Path) -> None:
    path = log_dir / f"{42:020d}.log"
    data = bytearray(path.read_bytes())
    before = {record.offset for record in read(log_dir)}
    row = rows(log_dir, Query(from_offset=60, to_offset=61))[0]
    data[row[kernel.POSITION] + row[kernel.SIZE] - 1] ^= 1
    path.write_bytes(data)
    found = list(dump_records(FS, list_partition(FS, str(log_dir)), Query()))
    damages = [f for f in found if isinstance(f, FoundDamage)]
    assert [(d.damage.position, d.damage.end - d.damage.position) for d in damages] == [
        (row[kernel.POSITION], row[kernel.SIZE])
    ]
    assert damages[0].header is not None
    assert damages[0].header.base_offset == row[kernel.BASE_OFFSET]
    left = {f[1].offset for f in found if not isinstance(f, FoundDamage)}
    assert before - left == set(range(row[kernel.BASE_OFFSET], row[kernel.LAST_OFFSET] + 1))


def test_a_batch_inside_a_damaged_record_is_not_taken_for_one_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    path.mkdir()
    inner = bytes(build_batch(records(0), base_offset=7))
    outer = build_batch([records(1)[0]._replace(value=inner * 3)], base_offset=100)
    outer[61] ^= 0x40
    outer[8:12] = (len(outer) + 500).to_bytes(4, "big")  # nor does its length lead on
    last = build_batch(records(2), base_offset=101)
    (path / f"{100:020d}.log").write_bytes(outer + last)
    found = list(dump_records(FS, list_partition(FS, str(path)), Query()))
    assert [f[1].offset for f in found if not isinstance(f, FoundDamage)] == [101, 102, 103, 104]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_single_file_can_be_dumped_under_any_name(tmp_path: Path, codec: Codec) -> None:
    path = tmp_path / "cut-out.bin"
    path.write_bytes(build_batch(records(3), base_offset=5, codec=codec))
    target = resolve(FS, str(path))
    assert isinstance(target, Partition)
    found = [f[1] for f in dump_records(FS, target, Query()) if not isinstance(f, FoundDamage)]
    assert [record.offset for record in found] == [5, 6, 7, 8]
    assert found[1].headers == [(b"header", b"\xff\x00"), (b"none", None)]
