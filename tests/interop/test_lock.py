"""One directory, one owner: Kafka and ottla see each other's lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.config import LogConfig
from ottla.errors import StorageError
from ottla.testing.runtime import SimulatedRuntime
from tests.consuming import open_logs
from tests.interop.kafka import NEWEST, KafkaBroker


def test_neither_opens_what_the_other_holds(tmp_path: Path) -> None:
    with KafkaBroker(NEWEST, tmp_path) as broker:
        with pytest.raises(StorageError, match="in use by another process"):
            open_logs(broker.data_dir, SimulatedRuntime(), LogConfig())
        broker.stop()
        manager, _ = open_logs(broker.data_dir, SimulatedRuntime(), LogConfig())
        with pytest.raises(RuntimeError):
            broker.start()
        assert "Failed to acquire lock on file .lock" in broker.log_text()
        manager.close()
        broker.start()
