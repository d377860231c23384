"""`ottla adopt` and `ottla release` as a user calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ottla.cli.main import app
from tests import corpus


def ottla(*args: object) -> Result:
    return CliRunner().invoke(app, [*map(str, args)], prog_name="ottla")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return corpus.unpack("kafka-4.2.0-stopped", tmp_path)


def test_help_shows_examples() -> None:
    listed = ottla("--help").stdout
    for command in ("adopt", "release"):
        assert command in listed
        assert f"ottla {command} /disk1/kafka /disk2/kafka --json" in ottla(command, "--help").stdout


def test_adopt_shows_what_it_found_and_says_what_it_did(data: Path) -> None:
    result = ottla("adopt", data)
    assert result.exit_code == 0
    assert "node 1: 15 topics" in result.stdout
    wide = next(line for line in result.stdout.splitlines() if line.split()[:1] == ["wide"])
    metadata = (data / "wide-0/partition.metadata").read_text()
    assert wide.split()[1:3] == ["2", metadata.rpartition("topic_id: ")[2]]
    assert "index.interval.bytes=600" in wide
    assert f"15 topics taken over; written down in {data}/ottla.db" in result.stdout
    assert "nothing new" in ottla("adopt", data).stdout


def test_adopt_as_json(data: Path) -> None:
    shutil.rmtree(data / "wide-0")
    fields = json.loads(ottla("adopt", data, "--json").stdout)
    assert (fields["node_ids"], fields["log_dirs"]) == ([1], [str(data)])
    [wide] = [topic for topic in fields["topics"] if topic["name"] == "wide"]
    assert (wide["partitions"], wide["missing_partitions"], wide["new"]) == ([1], [0], True)
    assert wide["config"]["index.interval.bytes"] == "600"
    assert fields["broker_configs"] == {"": {"min.insync.replicas": "1"}}


def test_release_names_what_is_lost(data: Path) -> None:
    ottla("adopt", data)
    (data / "mine-0").mkdir()
    shutil.rmtree(data / "wide-1")
    result = ottla("release", data)
    assert result.exit_code == 0
    assert f"removed {data}/ottla.db" in result.stdout
    assert "move them aside as stray (-stray):\n  mine-0\n" in result.stdout
    assert "make them anew, empty:\n  wide-1\n" in result.stdout
    again = json.loads(ottla("release", data, "--json").stdout)
    assert (again["removed"], again["stray"]) == ([], ["mine-0"])


def test_a_wrong_directory_is_one_line_of_error(tmp_path: Path) -> None:
    for command in ("adopt", "release"):
        result = ottla(command, tmp_path)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"ottla: {tmp_path} has no meta.properties")
        assert len(result.stderr.splitlines()) == 1
