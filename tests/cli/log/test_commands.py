"""`ottla log` as a user calls it: what it prints, in which form, and how it ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ottla.cli.main import app
from ottla.cli.values import format_time
from ottla.records.builder import NewRecord, build_batch
from ottla.storage.fs import RealFileSystem
from ottla.storage.losses import Loss, note
from ottla.testing.runtime import START_MS
from tests import corpus
from tests.logtools.making import make_data_dir

COMMANDS = ("show", "dump", "verify", "repair", "losses", "reindex", "trim", "compact")


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data_dir(tmp_path_factory.mktemp("cli") / "data")


@pytest.fixture
def data_dir(pristine: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "data"
    shutil.copytree(pristine, copy)
    return copy


def ottla(*args: object) -> Result:
    return CliRunner().invoke(app, ["log", *map(str, args)], prog_name="ottla")


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def damage(path: Path, position: int = 300) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


# -- dump


def test_dump_shows_batches_as_text(pristine: Path) -> None:
    result = ottla("dump", pristine / "orders-0", "--offset", "4:8")
    assert result.exit_code == 0
    log, found = result.stdout.splitlines()
    assert log == f"{pristine}/orders-0/{0:020d}.log"
    for part in ("offsets 4..7", "4 records", "gzip", "2023-11-14T22:13:20.013Z", "producer 7/0 sequence 0"):
        assert part in found


def test_dump_gives_a_json_object_a_batch(pristine: Path) -> None:
    found = lines(ottla("dump", pristine / "orders-0", "--json", "--offset", "8:12"))
    assert len(found) == 1
    batch = found[0]
    assert {
        key: batch[key]
        for key in ("partition", "file", "base_offset", "last_offset", "count", "magic", "codec")
    } == {
        "partition": "orders-0",
        "file": f"{0:020d}.log",
        "base_offset": 8,
        "last_offset": 11,
        "count": 4,
        "magic": 2,
        "codec": "snappy",
    }
    assert (batch["producer_id"], batch["producer_epoch"], batch["base_sequence"]) == (8, 0, 0)
    assert (batch["is_transactional"], batch["is_control"], batch["leader_epoch"]) == (True, False, 0)
    assert (batch["max_timestamp"], batch["crc_ok"]) == (START_MS + 23, True)
    assert {"position", "size"} <= set(batch)


def test_dump_gives_a_json_object_a_record_and_base64_where_it_is_not_utf8(pristine: Path) -> None:
    found = lines(ottla("dump", pristine / "orders-0", "--records", "--json", "--offset", "4:6"))
    assert found == [
        {
            "partition": "orders-0",
            "offset": 4,
            "timestamp": START_MS + 10,
            "key": None,
            "value": "value 1 " * 3,
            "headers": [],
        },
        {
            "partition": "orders-0",
            "offset": 5,
            "timestamp": START_MS + 11,
            "key": "key-1",
            "value": "value 1 " * 3,
            "headers": [{"key": "header", "value": {"base64": "/wA="}}, {"key": "none", "value": None}],
        },
    ]


@pytest.mark.parametrize(
    ("encoding", "key", "header"), [("hex", "6b65792d31", "ff00"), ("base64", "a2V5LTE=", "/wA=")]
)
def test_bytes_are_shown_and_asked_for_in_the_chosen_encoding(
    pristine: Path, encoding: str, key: str, header: str
) -> None:
    args = (
        "dump",
        pristine / "orders-0",
        "--records",
        "--json",
        "--encoding",
        encoding,
        "--key",
        key,
        "--offset",
        "0:9",
    )
    found = lines(ottla(*args))
    assert [record["offset"] for record in found] == [5, 6, 7]
    assert {record["key"] for record in found} == {key}
    assert found[0]["headers"][0]["value"] == header


def test_records_are_readable_as_text_also_with_line_breaks_in_them(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    batch = build_batch(
        [NewRecord(START_MS, b"k", b"two\nlines", [(b"h", b"v")]), NewRecord(START_MS, None, None)]
    )
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(batch)
    result = ottla("dump", tmp_path / "t-0", "--records")
    assert result.stdout.splitlines() == [
        '0  2023-11-14T22:13:20.000Z  k  "two\\nlines"  [h: v]',
        "1  2023-11-14T22:13:20.000Z  null  null",
    ]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (str(START_MS + 100), str(START_MS + 110)),
        ("2023-11-14T22:13:20.100Z", "2023-11-14T22:13:20.110"),
        ("2023-11-15T00:13:20.100+02:00", "2023-11-14T22:13:20.110+00:00"),
    ],
)
def test_times_are_iso_or_epoch_milliseconds_and_the_end_is_left_out(
    pristine: Path, start: str, end: str
) -> None:
    args = ("dump", pristine / "orders-0", "--records", "--json", "--from", start, "--to", end)
    found = [record["timestamp"] - START_MS for record in lines(ottla(*args))]
    assert found == [100, 101, 102, 103]


def test_times_may_be_some_time_ago(pristine: Path) -> None:
    everything = lines(ottla("dump", pristine / "orders-0", "--records", "--json"))
    assert lines(ottla("dump", pristine / "orders-0", "--records", "--json", "--to", "-15m")) == everything
    assert lines(ottla("dump", pristine / "orders-0", "--records", "--json", "--from", "-15m")) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--from", "yesterday"), "is not a time; write 2026-01-31T12:00:00Z"),
        (("--offset", "a:b"), "is not an offset range; write 100, 100:200"),
        (("--key", "zz", "--encoding", "hex"), "is not hex"),
        (("--encoding", "latin"), "latin"),
    ],
)
def test_wrong_usage_says_what_is_right_and_exits_with_2(
    pristine: Path, args: tuple[str, ...], message: str
) -> None:
    result = ottla("dump", pristine / "orders-0", *args)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", "").split())


def test_a_path_that_is_no_log_says_so_and_exits_with_2(tmp_path: Path) -> None:
    for command in ("show", "dump", "verify", "repair"):
        result = ottla(command, tmp_path / "nothing")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"ottla: {tmp_path}/nothing does not exist; give a log file")
    (tmp_path / "empty").mkdir()
    assert "neither segments nor partition directories" in ottla("verify", tmp_path / "empty").stderr


def test_dump_of_a_data_directory_has_every_partition(pristine: Path) -> None:
    found = lines(ottla("dump", pristine, "--json"))
    assert {batch["partition"] for batch in found} == {"orders-0", "orders-1"}
    assert "# orders-1\n" in ottla("dump", pristine).stdout


def test_dump_marks_what_is_damaged_goes_on_and_exits_with_1(data_dir: Path) -> None:
    path = data_dir / "orders-0" / f"{42:020d}.log"
    whole = lines(ottla("dump", path, "--json"))
    damage(path)
    result = ottla("dump", path, "--json")
    assert result.exit_code == 1
    found = lines(result)
    bad = [batch for batch in found if not batch["crc_ok"]]
    assert [(b["position"], b["base_offset"], b["damage"]) for b in bad] == [
        (244, 46, "the checksum does not match")
    ]
    assert [b["position"] for b in found] == [b["position"] for b in whole]
    result = ottla("dump", path, "--records", "--json")
    assert result.exit_code == 1
    assert "141 bytes at position 244 are left out" in result.stderr
    assert {record["offset"] for record in lines(result)} == set(range(42, 86)) - {46, 47, 48, 49}


def test_dump_of_other_files_shows_their_entries(pristine: Path) -> None:
    log_dir = pristine / "orders-0"
    assert lines(ottla("dump", log_dir / f"{42:020d}.index", "--json"))[0] == {"offset": 49, "position": 244}
    assert lines(ottla("dump", log_dir / f"{42:020d}.timeindex", "--json"))[0]["offset"] == 49
    assert lines(ottla("dump", log_dir / f"{42:020d}.txnindex", "--json"))[0]["producer_id"] == 9
    assert {p["producer_id"] for p in lines(ottla("dump", log_dir / f"{42:020d}.snapshot", "--json"))} == {
        7,
        8,
        9,
    }
    assert lines(ottla("dump", log_dir / "leader-epoch-checkpoint", "--json"))[1] == {
        "epoch": 1,
        "start_offset": 52,
    }
    assert ottla("dump", pristine / "recovery-point-offset-checkpoint").stdout.splitlines()[0] == (
        "topic orders  partition 0  offset 156"
    )


def test_dump_writes_parquet(pristine: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    records, batches = tmp_path / "records.parquet", tmp_path / "batches.parquet"
    assert ottla("dump", pristine, "--records", "--parquet", records).exit_code == 0
    assert ottla("dump", pristine / "orders-0", "--parquet", batches).exit_code == 0
    table = pq.read_table(records)
    assert table.num_rows == 2 * 156
    row = table.slice(5, 1).to_pylist()[0]
    assert (row["topic"], row["partition"], row["offset"], row["key"]) == ("orders", 0, 5, b"key-1")
    assert row["headers"] == [{"key": "header", "value": b"\xff\x00"}, {"key": "none", "value": None}]
    assert row["timestamp"].timestamp() * 1000 == START_MS + 11
    printed = lines(ottla("dump", pristine / "orders-0", "--json"))
    assert pq.read_table(batches).column("position").to_pylist() == [batch["position"] for batch in printed]


def test_internal_topics_are_decoded(tmp_path: Path) -> None:
    path = corpus.unpack("kafka-4.2.0-stopped", tmp_path)
    offsets = lines(ottla("dump", path / "__consumer_offsets-0", "--records", "--json"))
    commits = [
        r for r in offsets if r["key"].get("type") == "offset_commit" and r["key"]["group"] == "readers"
    ]
    assert commits[-1]["value"]["offset"] == 21
    states = lines(ottla("dump", path / "__transaction_state-0", "--records", "--json"))
    assert {"transactional_id", "type"} == set(states[0]["key"])
    assert states[0]["value"]["status"] == "Empty"


def test_a_reader_that_goes_away_ends_dump_quietly(pristine: Path) -> None:
    command = f"{sys.executable} -m ottla log dump {pristine} --records | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "# orders-0\n"
    assert done.stderr == ""


# -- show


def test_show_in_a_pipe_has_plain_columns_and_remarks(pristine: Path) -> None:
    text = ottla("show", pristine / "orders-0").stdout
    table = [line.split() for line in text.splitlines() if not line.startswith("#")]
    assert table[0][:6] == ["segment", "bytes", "first", "last", "from", "to"]
    assert {len(row) for row in table} == {11}
    assert [row[0] for row in table[1:]] == [f"{base:020d}.log" for base in (0, 42, 86, 130)]
    assert table[-1][2:4] + table[-1][-1:] == ["130", "155", "active,snapshot"]
    remarks = [line for line in text.splitlines() if line.startswith("#")]
    assert any("leader epochs: 0 from offset 0" in line for line in remarks)
    assert any("producer 7 at offset 156" in line for line in remarks)
    assert text.isascii()


def test_show_of_a_directory_in_a_pipe_has_a_line_a_partition(pristine: Path) -> None:
    remark, head, *rows = ottla("show", pristine).stdout.splitlines()
    assert remark.startswith(f"# {pristine}: 2 partitions, ")
    assert head.split()[:5] == ["partition", "segments", "bytes", "first", "last"]
    assert [row.split()[:2] + row.split()[3:5] for row in rows] == [
        ["orders-0", "4", "0", "155"],
        ["orders-1", "4", "0", "155"],
    ]


def test_show_gives_a_json_object_a_partition(pristine: Path) -> None:
    shown = lines(ottla("show", pristine / "orders-0", "--json"))[0]
    assert [segment["base_offset"] for segment in shown["segments"]] == [0, 42, 86, 130]
    assert shown["segments"][0] | {"bytes_per_index_entry": 0} == {
        "file": f"{0:020d}.log",
        "base_offset": 0,
        "size": 1788,
        "is_active": False,
        "first_offset": 0,
        "last_offset": 41,
        "first_timestamp": START_MS,
        "max_timestamp": START_MS + 93,
        "index_entries": 6,
        "time_index_entries": 6,
        "aborted_transactions": 2,
        "bytes_per_index_entry": 0,
        "has_snapshot": False,
    }
    assert shown["epochs"][1] == {"epoch": 1, "start_offset": 52}


@pytest.mark.parametrize("name", corpus.NAMES)
def test_every_directory_of_kafka_can_be_shown_and_is_healthy(tmp_path: Path, name: str) -> None:
    path = corpus.unpack(name, tmp_path)
    result = ottla("verify", path)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.splitlines()[-1].startswith(f"{path}: healthy (0 defects")
    expected = corpus.expected(name)
    for shown in lines(ottla("show", path, "--json")):
        if shown["name"] in expected and expected[shown["name"]]["end"]:
            assert shown["segments"][-1]["base_offset"] <= expected[shown["name"]]["end"]
            lasts = [
                segment["last_offset"] for segment in shown["segments"] if segment["last_offset"] is not None
            ]
            assert lasts[-1] == expected[shown["name"]]["end"] - 1


# -- verify


def test_verify_names_each_defect_and_exits_with_1(data_dir: Path) -> None:
    path = data_dir / "orders-0" / f"{42:020d}.log"
    damage(path)
    result = ottla("verify", data_dir)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == (
        f"defect: {path} at position 244, offset 46: the checksum does not match "
        "(141 bytes up to the next good batch) [bad-crc]"
    )
    assert result.stdout.splitlines()[-1].startswith(
        f"{data_dir}: DAMAGED (1 defect, 0 notes); `ottla log repair"
    )
    result = ottla("verify", data_dir, "--json")
    assert result.exit_code == 1
    assert lines(result) == [
        {
            "level": "defect",
            "code": "bad-crc",
            "file": str(path),
            "meaning": "the checksum does not match (141 bytes up to the next good batch)",
            "position": 244,
            "offset": 46,
        }
    ]


def test_verify_of_a_healthy_directory_exits_with_0_and_writes_nothing(pristine: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in pristine.rglob("*")}
    result = ottla("verify", pristine)
    assert (result.exit_code, result.stdout) == (0, f"{pristine}: healthy (0 defects, 0 notes)\n")
    assert {path: path.stat().st_mtime_ns for path in pristine.rglob("*")} == before


def test_verify_names_what_cannot_be_read_and_goes_on(data_dir: Path) -> None:
    path = data_dir / "orders-0" / f"{42:020d}.log"
    path.unlink()
    path.mkdir()
    damage(data_dir / "orders-1" / f"{42:020d}.log")
    result = ottla("verify", data_dir)
    assert result.exit_code == 1
    assert f"defect: {path}: it cannot be read: Is a directory" in result.stdout
    assert f"defect: {data_dir}/orders-1/{42:020d}.log at position 244" in result.stdout


def test_a_text_file_is_no_log_file_and_no_repair_is_proposed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hi\n")
    result = ottla("verify", path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"ottla: {path} is no log file")
    assert "repair" not in result.stdout + result.stderr


def test_a_renamed_segment_is_renamed_back(data_dir: Path) -> None:
    path = data_dir / "orders-0" / f"{42:020d}.log"
    path.rename(path.with_name(f"{99_999:020d}.log"))
    result = ottla("repair", data_dir)
    assert f"rename: {data_dir}/orders-0/{99_999:020d}.log: to {42:020d}.log" in result.stdout
    assert ottla("repair", data_dir, "--write").exit_code == 0
    assert path.exists()
    assert ottla("verify", data_dir).exit_code == 0


# -- repair and the offline commands


def test_repair_only_tells_unless_it_is_to_write(data_dir: Path) -> None:
    path = data_dir / "orders-0" / f"{42:020d}.log"
    damage(path)
    damage(data_dir / "orders-1" / f"{42:020d}.index", 3)
    before = {file: file.read_bytes() for file in data_dir.rglob("*") if file.is_file()}
    result = ottla("repair", data_dir)
    assert result.exit_code == 1
    assert f"skip-corrupt: defect: {path} at position 244" in result.stdout
    assert f"rebuild: {data_dir}/orders-1/{42:020d}.index" in result.stdout
    assert "nothing was changed, --write does it" in result.stdout
    assert {file: file.read_bytes() for file in data_dir.rglob("*") if file.is_file()} == before
    result = ottla("repair", data_dir, "--write", "--skip-corrupt", "--json")
    assert result.exit_code == 1  # records are lost
    assert {(step["action"], step.get("done"), step.get("code")) for step in lines(result)} == {
        ("quarantine", True, None),
        ("rebuild", True, None),
        ("not mended", None, "lost-records"),
    }
    assert ottla("verify", data_dir).exit_code == 1
    ottla("losses", data_dir, "--acknowledge")
    assert ottla("verify", data_dir).exit_code == 0
    assert ottla("repair", data_dir, "--write").exit_code == 0
    assert "nothing to mend" in ottla("repair", data_dir).stdout
    assert (path.parent / f"{42:020d}.quarantine").stat().st_size == 141


def test_writing_commands_refuse_a_directory_in_use(data_dir: Path) -> None:
    holder = (
        "import sys; from ottla.storage.fs import RealFileSystem\n"
        f"lock = RealFileSystem().lock({str(data_dir / '.lock')!r})\n"
        "print(lock is not None, flush=True); sys.stdin.read()"
    )
    log_dir = data_dir / "orders-0"
    damage(log_dir / f"{42:020d}.index", 3)
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        for args in (
            ("repair", data_dir),
            ("repair", log_dir),
            ("reindex", log_dir),
            ("trim", log_dir, "--before", 50),
            ("compact", log_dir),
        ):
            assert ottla(*args).exit_code in (0, 1)  # looking is allowed
            result = ottla(*args, "--write")
            assert result.exit_code == 2
            assert "is in use by a running broker" in result.stderr
            assert "stop the process that uses the directory" in result.stderr
        assert ottla("verify", data_dir).exit_code == 1
        process.communicate("")


def test_reindex_trim_and_compact_say_what_they_do(data_dir: Path) -> None:
    log_dir = data_dir / "orders-0"
    assert ottla("reindex", log_dir, "--interval", 200).stdout == "0 files differ\n"
    result = ottla("reindex", log_dir, "--write")
    assert result.exit_code == 0
    assert f"rebuilt: {log_dir}/{0:020d}.index" in result.stdout
    result = ottla("trim", log_dir, "--after-time", START_MS + 233)
    assert "kept are offsets 0 to 102" in result.stdout
    assert "nothing was changed" in result.stdout
    result = ottla("trim", log_dir, "--before", 50, "--after-time", START_MS + 233, "--write")
    assert "the log now holds offsets 50 to 102" in result.stdout
    result = ottla("compact", log_dir, "--write")
    assert "compacted up to offset 86" in result.stdout
    assert ottla("verify", data_dir).exit_code == 0
    assert ottla("trim", log_dir).exit_code == 2
    assert ottla("trim", data_dir, "--before", 1).exit_code == 2


# -- losses


def put_on_record(data_dir: Path) -> None:
    loss = Loss("recovery", f"{0:020d}.log", 3, 9, "zeros", 300, 80, 2, f"{0:020d}.quarantine", START_MS)
    note(RealFileSystem(), str(data_dir / "orders-1"), [loss])


def test_losses_are_listed_until_they_are_acknowledged(data_dir: Path) -> None:
    assert ottla("losses", data_dir).stdout == "nothing is on record as lost\n"
    put_on_record(data_dir)
    for path in (data_dir, data_dir / "orders-1"):
        result = ottla("losses", path)
        assert result.exit_code == 1
        assert result.stdout.splitlines() == [
            f"orders-1: 6 offsets (3 to 8) missing in {0:020d}.log at position 300 (80 bytes, 2 whole batches): zeros;"
            f" the bytes are kept in {0:020d}.quarantine (found by recovery {format_time(START_MS)}; open)",
            "1 not acknowledged; --acknowledge ends the messages at every start, and verify's defects",
        ]
    verified = ottla("verify", data_dir, "--json")
    assert verified.exit_code == 1
    assert [(line["level"], line["code"], line["offset"]) for line in lines(verified)] == [
        ("defect", "lost-records", 3)
    ]
    result = ottla("losses", data_dir, "--acknowledge")
    assert result.exit_code == 0
    assert "1 acknowledged" in result.stdout
    assert "all acknowledged" in ottla("losses", data_dir).stdout
    verified = ottla("verify", data_dir)
    assert verified.exit_code == 0
    assert "note" in verified.stdout
    assert "6 offsets (3 to 8)" in verified.stdout


def test_losses_as_json_have_all_that_is_known(data_dir: Path) -> None:
    put_on_record(data_dir)
    [line] = lines(ottla("losses", data_dir, "--json"))
    assert line["partition"] == "orders-1"
    assert (line["first_offset"], line["end_offset"], line["offsets"]) == (3, 9, 6)
    assert line["acknowledged_ms"] is None


def test_a_damaged_record_of_losses_is_a_defect_until_it_is_acknowledged(data_dir: Path) -> None:
    put_on_record(data_dir)
    record = data_dir / "orders-1" / "ottla.losses"
    record.write_bytes(bytes(record.stat().st_size))
    assert [line["code"] for line in lines(ottla("verify", data_dir, "--json"))] == ["loss-record"]
    assert ottla("losses", data_dir).exit_code == 1
    assert ottla("losses", data_dir, "--acknowledge").exit_code == 0
    assert ottla("verify", data_dir).exit_code == 0


def test_losses_of_a_single_file_are_refused(data_dir: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "ottla", "log", "losses", data_dir / "orders-0" / f"{0:020d}.log"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 2
    assert "give a partition or a data directory" in result.stderr
