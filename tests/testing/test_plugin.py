"""The pytest plugin, in a run of pytest of its own: the examples of docs/testing.md, and that it costs nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/testing.md").read_text(), re.DOTALL)
KAFKA_PYTHON = "ignore:(read|open)_text is deprecated:DeprecationWarning"  # at its import, on Python 3.11
# It forgets sockets that are being connected when it is closed. A broker's connections are not of this class.
FORGOTTEN = "ignore:Exception ignored in. <socket.socket fd:pytest.PytestUnraisableExceptionWarning"


def run_pytest(directory: Path, ini: str = "") -> str:
    filters = f"filterwarnings =\n    error\n    {KAFKA_PYTHON}\n    {FORGOTTEN}\n"
    (directory / "pytest.ini").write_text(f"[pytest]\n{filters}{ini}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "."]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=250)
    return done.stdout + done.stderr


def test_every_example_of_the_page_runs(tmp_path: Path) -> None:
    for number, text in enumerate(EXAMPLES):
        (tmp_path / f"test_example_{number}.py").write_text(text)
    text = run_pytest(tmp_path)
    assert f"{len(EXAMPLES)} passed" in text, text


OWN = """
def test_settings_come_from_the_ini_file(ottla_broker):
    assert ottla_broker.broker.settings.config.num_partitions == 3
    assert ottla_broker.topics() == []

def test_every_test_has_a_broker_of_its_own(ottla_broker, ottla_topic):
    assert ottla_broker.topics() == ["test_every_test_has_a_broker_of_its_own"]

import pytest
@pytest.mark.parametrize("name", ["a/b", "ü" * 300, "."])
def test_any_name_of_a_test_makes_a_topic(ottla_broker, ottla_topic, name):
    assert ottla_broker.topics() == [ottla_topic]
"""


def test_settings_and_topics(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(OWN)
    text = run_pytest(
        tmp_path, "ottla_broker_properties =\n    num.partitions = 3\n    log.cleaner.enable=false\n"
    )
    assert "5 passed" in text


def test_a_line_that_is_no_setting_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("def test_it(ottla_broker): pass")
    assert "'num.partitions 3' is not key=value" in run_pytest(
        tmp_path, "ottla_broker_properties = num.partitions 3"
    )


def test_a_setting_that_nobody_has_fails_the_test_and_names_what_was_meant(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("def test_it(ottla_broker): pass")
    said = run_pytest(tmp_path, "ottla_broker_properties = num.partitons=3")
    assert (
        "ConfigError: neither ottla nor Kafka has the setting num.partitons (did you mean num.partitions?)"
        in said
    )
    assert "1 error" in said


IMPORTS = """
import sys
import pytest
before = set(sys.modules)
import ottla.testing.plugin
print(sorted(set(sys.modules) - before))
"""


def test_a_run_without_a_broker_loads_next_to_nothing() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", IMPORTS], capture_output=True, text=True)
    assert done.stderr == ""
    assert eval(done.stdout) == ["ottla", "ottla.testing", "ottla.testing.plugin"]


def test_pytest_finds_it_by_itself(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.hasplugin("ottla")
