"""Kafka's own DumpLogSegments reads every file that ottla writes, and agrees with it record by record."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.dumping import printed, scanned
from tests.interop.dump import Dump, dump_log_segments, dump_records, told, told_of
from tests.interop.ottla_logs import COORDINATOR_EPOCH, Partition, Writer

INDEXES = (".index", ".timeindex")
OTHERS = (".txnindex", ".snapshot")


@dataclass
class Written:
    """A directory closed by ottla, what it must hold, and what Kafka's tool says of it."""

    data_dir: Path
    partitions: dict[str, Partition]
    logs: Dump
    others: Dump

    def files(self, topic: str, suffix: str) -> list[Path]:
        return sorted((self.data_dir / f"{topic}-0").glob(f"*{suffix}"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, rng: random.Random) -> Written:
    data_dir = tmp_path_factory.mktemp("written")
    writer = Writer(data_dir, rng)
    partitions = writer.play()
    writer.stop()
    logs = dump_records(sorted(data_dir.glob("*/*.log")))
    others = dump_log_segments(with_suffix(data_dir, OTHERS))
    return Written(data_dir, partitions, logs, others)


def with_suffix(data_dir: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return [path for path in sorted(data_dir.glob("*/*")) if path.suffix in suffixes]


def test_every_record_is_printed_as_it_was_sent(written: Written) -> None:
    for topic, partition in written.partitions.items():
        dumped = [
            record
            for path in written.files(topic, ".log")
            for record in written.logs.files[str(path)].records
        ]
        data = [told(record) for record in dumped if "endTxnMarker" not in record]
        # Segments may begin before the log's start.
        assert [record for record in data if record["offset"] >= partition.log.start_offset] == [
            told_of(record) for record in partition.records
        ]


def test_every_marker_is_printed_as_it_was_written(written: Written) -> None:
    for topic, partition in written.partitions.items():
        dumped = [
            record
            for path in written.files(topic, ".log")
            for record in written.logs.files[str(path)].records
        ]
        assert [
            (record["offset"], record["endTxnMarker"], record["coordinatorEpoch"], record["CreateTime"])
            for record in dumped
            if "endTxnMarker" in record
        ] == [
            (offset, "ABORT" if ended.is_aborted else "COMMIT", COORDINATOR_EPOCH, ended.timestamp)
            for offset, ended in partition.markers.items()
        ]


def test_every_batch_is_printed_as_we_read_it(written: Written) -> None:
    # The one thing that the tool may remark on: gaps in compacted logs.
    gaps = [line for line in written.logs.problems if line.startswith("Non-consecutive offsets in ")]
    assert all("/compacted" in line for line in gaps)
    told_of_gaps = [line for line in written.logs.problems if " is followed by " in line]
    assert len(gaps) + len(told_of_gaps) == len(written.logs.problems)
    for path in sorted(written.data_dir.glob("*/*.log")):
        assert written.logs.files[str(path)].batches == [printed(row) for row in scanned(path)]


def test_the_scenario_reaches_every_kind_of_batch(written: Written) -> None:
    batches = [batch for file in written.logs.files.values() for batch in file.batches]
    assert {batch["compresscodec"] for batch in batches} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert {batch["partitionLeaderEpoch"] for batch in batches} == {0, 1}
    assert {batch["isTransactional"] for batch in batches} == {True, False}
    assert {batch["isControl"] for batch in batches} == {True, False}
    assert any(batch["producerId"] >= 0 and not batch["isTransactional"] for batch in batches)
    assert {"LogAppendTime", "CreateTime"} <= {name for batch in batches for name in batch}
    assert max(batch["size"] for batch in batches) > 65_536
    assert len(written.files("codec-none", ".log")) > 2


def test_indexes_pass_kafkas_sanity_check(written: Written) -> None:
    files = with_suffix(written.data_dir, INDEXES)
    dump = dump_log_segments(files, "--index-sanity-check")
    assert dump.problems == []
    for path in files:
        assert dump.files[str(path)].remarks in ([f"{path} passed sanity check."], [f"{path} is empty."])


def test_index_entries_lead_to_the_batches_they_name(written: Written) -> None:
    dump = dump_log_segments(with_suffix(written.data_dir, INDEXES))
    # The tool knows no time of a batch that compaction has emptied; the batch itself does, and the index goes by it.
    emptied = [line for line in dump.problems if "/compacted" in line or "log timestamp: -1" in line]
    assert dump.problems == emptied
    for path in sorted(written.data_dir.glob("*/*.log")):
        batches = {batch["position"]: batch for batch in written.logs.files[str(path)].batches}
        for entry in dump.files[str(path.with_suffix(".index"))].entries:
            assert batches[entry["position"]]["lastOffset"] == entry["offset"]
        stamps = dump.files[str(path.with_suffix(".timeindex"))].entries
        largest = max((b.get("CreateTime", b.get("LogAppendTime", -1)) for b in batches.values()), default=-1)
        assert (stamps[-1]["timestamp"] if stamps else -1) == largest


def test_the_tool_would_have_told_of_a_wrong_index(written: Written, tmp_path: Path) -> None:
    source = written.files("codec-none", ".log")[0]
    for suffix in (".log", *INDEXES):
        (tmp_path / source.name).with_suffix(suffix).write_bytes(source.with_suffix(suffix).read_bytes())
    index = (tmp_path / source.name).with_suffix(".index")
    entries = bytearray(index.read_bytes())
    entries[3] ^= 1  # the offset of the first entry
    index.write_bytes(entries)
    assert dump_log_segments([index]).problems != []


def test_aborted_transactions_are_listed(written: Written) -> None:
    for topic, partition in written.partitions.items():
        listed = [
            (entry["producerId"], entry["firstOffset"], entry["lastOffset"])
            for path in written.files(topic, ".txnindex")
            for entry in written.others.files[str(path)].entries
        ]
        assert listed == [
            (ended.producer_id, ended.first_offset, offset)
            for offset, ended in partition.markers.items()
            if ended.is_aborted
        ]


def test_snapshots_hold_every_producer(written: Written) -> None:
    for topic, partition in written.partitions.items():
        snapshots = written.files(topic, ".snapshot")
        if not partition.producers and not snapshots:
            continue  # there is nothing to write down
        latest = snapshots[-1]
        assert int(latest.stem) == partition.log.end_offset
        kept = {entry["producerId"]: entry for entry in written.others.files[str(latest)].entries}
        assert set(kept) == set(partition.producers)
        for producer in partition.producers.values():
            entry = kept[producer.id]
            first = partition.open.get(producer.id, [None])[0]
            assert entry["producerEpoch"] == producer.epoch
            assert entry["lastSequence"] == producer.sequence - 1
            wanted = "OptionalLong.empty" if first is None else f"OptionalLong[{first}]"
            assert entry["currentTxnFirstOffset"] == wanted
