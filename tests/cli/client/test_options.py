"""The client commands where no broker is needed: help, options, places, cutting input, and nobody to talk to."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from ottla.cli.client.byte_text import parse_header, separator, unescape
from ottla.cli.client.offsets import Kind, OffsetSpec, parse_place
from ottla.cli.client.produce_input import InputError, InputFiles, NewRecord, Parser, Shape
from ottla.cli.main import app

COMMANDS = {
    "topics": ("list", "describe", "create", "delete", "add-partitions", "offsets"),
    "configs": ("show", "set", "unset"),
    "records": ("delete",),
}
ALONE = ("produce", "consume", "cluster")


def ottla(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="ottla")


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that is taken, where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    "words",
    [
        *((group, command) for group, commands in COMMANDS.items() for command in commands),
        *((c,) for c in ALONE),
    ],
    ids=" ".join,
)
def test_help_of_every_command_has_an_example_and_the_common_options(words: tuple[str, ...]) -> None:
    text = ottla(*words, "--help").stdout
    examples = [line.strip() for line in text.partition("Example")[2].partition("Options:")[0].splitlines()]
    assert any(f"ottla {' '.join(words)}" in line for line in examples[1:])
    assert "\\b" not in text
    for option in ("--bootstrap", "-X", "--timeout", "OTTLA_BOOTSTRAP"):
        assert option in text


def test_a_group_lists_its_commands() -> None:
    for group, commands in COMMANDS.items():
        text = ottla(group, "--help").stdout
        assert all(command in text for command in commands)


def test_the_client_library_is_loaded_only_to_talk_to_a_broker() -> None:
    code = (
        "import sys; from ottla.cli import main as m\n"
        "try: m.main()\n"
        "except SystemExit: print('confluent_kafka' in sys.modules)"
    )
    for words in (["--help"], ["consume", "--help"], ["topics", "create", "--help"], ["version"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    "words", [("cluster",), ("topics", "list"), ("consume", "t"), ("produce", "t")], ids=" ".join
)
def test_nobody_to_talk_to_is_told_with_what_to_do(nobody: str, words: tuple[str, ...]) -> None:
    done = ottla(*words, "-b", nobody)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"ottla: cannot reach a broker at {nobody}: ")
    assert "Connection refused" in done.stderr
    assert "start one with `ottla serve`" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("setting", ["no.such.setting=1", "nothing", "=1", "socket.timeout.ms=soon"])
def test_a_setting_that_the_client_does_not_know_is_wrong_usage(nobody: str, setting: str) -> None:
    done = ottla("cluster", "-b", nobody, "-X", setting)
    assert done.exit_code == 2
    assert "-X" in done.stderr


def test_settings_may_come_from_a_file(nobody: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# for tests\n\nclient.id = me\nno.such.setting = 1\n")
    done = ottla("cluster", "-b", nobody, "-X", f"@{file}")
    assert done.exit_code == 2
    assert "no.such.setting" in done.stderr
    done = ottla("cluster", "-b", nobody, "-X", f"@{tmp_path}/missing")
    assert (done.exit_code, "No such file" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--json", "--binary"),
        ("--acks", "1", "--idempotent"),
        ("--json", "-K", ":"),
        ("--whole-file", "--parse-headers"),
        ("-K", ""),
        ("-D", r"\q"),
        ("--acks", "2"),
        ("--compression", "rar"),
        ("--timestamp", "noon"),
    ],
)
def test_options_of_produce_that_do_not_fit_together_are_wrong_usage(
    nobody: str, options: tuple[str, ...]
) -> None:
    done = ottla("produce", "t", "-b", nobody, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


# -- places


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", OffsetSpec(Kind.EARLIEST)),
        ("beginning", OffsetSpec(Kind.EARLIEST)),
        ("latest", OffsetSpec(Kind.LATEST)),
        ("end", OffsetSpec(Kind.LATEST)),
        ("max-timestamp", OffsetSpec(Kind.MAX_TIMESTAMP)),
        ("0", OffsetSpec(Kind.OFFSET, 0)),
        ("1700000000000", OffsetSpec(Kind.OFFSET, 1_700_000_000_000)),
        ("-7", OffsetSpec(Kind.LAST, 7)),
        ("@1700000000000", OffsetSpec(Kind.TIME, 1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", OffsetSpec(Kind.TIME, 1_700_000_000_000)),
        ("2023-11-14T23:13:20+01:00", OffsetSpec(Kind.TIME, 1_700_000_000_000)),
    ],
)
def test_a_place_is_a_word_an_offset_a_distance_or_a_time(text: str, place: OffsetSpec) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "-", "@", "--1", "-@1", "tomorrow", "1.5", "²"])
def test_what_is_no_place_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="earliest, latest, an offset"):
        parse_place(text)


# -- bytes


def test_escapes_stand_for_bytes() -> None:
    assert unescape(r"a\t\n\r\0\\\x41\xff") == b"a\t\n\r\0\\A\xff"
    assert unescape("ä") == "ä".encode()
    for wrong in (r"\q", "\\", r"\xg1", r"\x1"):
        with pytest.raises(typer.BadParameter, match="is not one of"):
            unescape(wrong)
    with pytest.raises(typer.BadParameter):
        separator("")


def test_a_header_without_a_value_is_null() -> None:
    assert [parse_header(text) for text in ("a=b=c", "a=", "a")] == [("a", b"b=c"), ("a", b""), ("a", None)]


# -- input


def read(path: Path, shape: Shape, delimiter: bytes = b"\n") -> list[bytes | None]:
    source = InputFiles([str(path)], shape, delimiter)
    return [record for batch in source.batches(lambda: None) for record in batch]


@given(
    records=st.lists(
        st.binary(max_size=30).filter(lambda data: b"||" not in data and not data.endswith(b"|"))
    )
)
def test_records_come_out_as_they_were_joined(
    records: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "delimited"
    path.write_bytes(b"".join(record + b"||" for record in records))
    assert read(path, Shape.TEXT, b"||") == records


def test_a_delimiter_across_two_reads_still_cuts(tmp_path: Path) -> None:
    path = tmp_path / "long"
    for size in range((1 << 20) - 3, (1 << 20) + 3):
        path.write_bytes(b"x" * size + b"||" + b"y" * (1 << 21))
        assert read(path, Shape.TEXT, b"||") == [b"x" * size, b"y" * (1 << 21)]
        path.write_bytes(size.to_bytes(4, "big") + b"x" * size + b"\xff\xff\xff\xff\0\0\0\1z")
        assert read(path, Shape.BINARY) == [b"x" * size, None, b"z"]


def test_a_length_below_minus_1_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xff\xff\xfe")
    with pytest.raises(InputError, match="-2"):
        read(path, Shape.BINARY)


def test_an_empty_file_is_no_line_but_one_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert read(path, Shape.TEXT) == []
    assert read(path, Shape.BINARY) == []
    assert read(path, Shape.WHOLE) == [b""]


def test_the_command_line_wins_over_the_fields_of_json() -> None:
    line = json.dumps({"key": "a", "value": "v", "partition": 3, "timestamp": 5}).encode()
    assert Parser(Shape.JSON).parse(line) == NewRecord(b"a", b"v", [], 3, 5)
    parser = Parser(Shape.JSON, key=b"k", partition=-1, timestamp_ms=7, headers=[("h", None)])
    assert parser.parse(line) == NewRecord(b"k", b"v", [("h", None)], -1, 7)


@pytest.mark.parametrize("line", [b"no tab", b"name\tvalue", b"a:1,b\tvalue"])
def test_headers_that_cannot_be_read_are_told(line: bytes) -> None:
    parser = Parser(Shape.TEXT, header_separators=(b"\t", b",", b":"))
    with pytest.raises(InputError):
        parser.parse(line)
