"""What a start leaves out is there soon after, so that an upgrade of the package never meets a broker half loaded."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import ottla
from ottla.api.registry import APIS
from ottla.protocol.messages import APIS as MESSAGES
from tests.cli.serving import TIMEOUT_S, Serve

PACKAGE = Path(ottla.__file__).parent
FLOORS = (
    "api",
    "cluster",
    "coordinator",
    "internal_topics",
    "protocol",
    "records",
    "replica",
    "server",
    "storage",
)
# For Spark, for tools, for tests, or where nothing is compiled.
NOT_FOR_BROKERS = {
    "ottla.records.columnar.arrow_kernel",
    "ottla.cluster.stopped",
    "ottla.records.check_kernel",
    "ottla.records.columnar.pack_kernel",
    "ottla.records.numbers",
    "ottla.server.intercepted",
    "ottla.storage.building.built_segments",
    "ottla.storage.indexes.foreign_index",
}
LOAD = """
import asyncio, sys
import ottla.cli.serve.one
from ottla.server.late_imports import import_the_rest
asyncio.run(import_the_rest(metrics=True))
print(*sys.modules)
"""


def modules_of(floor: str) -> set[str]:
    """Also those in folders of the floor; messages are imported by the API that they belong to."""
    return {
        ".".join(("ottla", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in (PACKAGE / floor).rglob("*.py")
        if path.stem != "__init__" and path.parent.name != "messages"
    }


def test_no_module_that_a_broker_may_need_is_left_for_later() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    needed = set().union(*map(modules_of, FLOORS)) - NOT_FOR_BROKERS
    needed |= {f"ottla.protocol.messages.{MESSAGES[key].module}" for key in APIS}
    assert needed - set(done.stdout.split()) == set()


def test_a_broker_loads_them_as_soon_as_it_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONVERBOSE", "1")  # so that Python tells on standard error what it imports
    words = ("--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
    with Serve(tmp_path, *words) as serve:
        deadline = time.monotonic() + TIMEOUT_S
        while "import 'ottla.server.prometheus'" not in serve.errors.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert serve.end() == 0
    assert "import 'ottla.api.describe_topic_partitions'" in serve.errors.read_text()
