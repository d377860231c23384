"""How long Apache Kafka 4.2 takes to recover and to clean a given partition directory.

Kafka's own log lines are the clock, so that the start of its JVM does not count. The heap and the collector
are those of Kafka's start script.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from tests.interop.adopt import adopt_partition, forget_clean_shutdown, set_checkpoint
from tests.interop.kafka import NEWEST, KafkaBroker

TOPIC = "bench"
PARTITION = f"{TOPIC}-0"
JVM_OPTIONS = ("-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
SETTINGS = {"log.index.size.max.bytes": "10485760", "log.cleaner.backoff.ms": "100"}
CLEAN_TIMEOUT_S = 300.0

_LOADED = re.compile(rf"Completed load of Log\(dir=\S*/{PARTITION}, .* in ([\d.,]+)ms")
_PROCESSED = re.compile(
    rf"cleaned log {PARTITION} \(dirty section = \[(\d+), (\d+)\]\)\s+"
    r"([\d.,]+) MB of log processed in ([\d.,]+) seconds.*?"
    r"Indexed [\d.,]+ MB in ([\d.,]+) seconds.*?"
    r"Cleaned [\d.,]+ MB in ([\d.,]+) seconds.*?"
    r"End size: ([\d.,]+) MB \(([\d.,]+) messages\)",
    re.DOTALL,
)


@dataclass(frozen=True)
class CleanerRun:
    """One pass of Kafka's cleaner over the log, as its statistics tell it."""

    size_mb: float
    seconds: float
    index_seconds: float
    clean_seconds: float
    end_size_mb: float
    end_messages: int


def recovery_seconds(source: Path, work_dir: Path) -> float:
    """Let Kafka recover a copy of the partition directory from its first segment on, as after a crash."""
    broker = _prepare(source, work_dir, {})
    set_checkpoint(broker.data_dir, "recovery-point-offset-checkpoint", TOPIC, 0, 0)
    forget_clean_shutdown(broker.data_dir)
    with broker:
        found = _LOADED.search(broker.log_text())
        if found is None:
            raise RuntimeError(f"no load of {PARTITION} in {broker.log_file}")
        return _number(found[1]) / 1000


def clean(source: Path, work_dir: Path) -> CleanerRun:
    """Let Kafka compact a copy of the partition directory once."""
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    with _prepare(source, work_dir, compact) as broker:
        deadline = time.monotonic() + CLEAN_TIMEOUT_S
        while (found := _PROCESSED.search(broker.log_text())) is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no cleaning of {PARTITION} in {broker.log_file}")
            time.sleep(0.2)
    size, seconds, indexing, cleaning, end_size = (_number(text) for text in found.groups()[2:7])
    return CleanerRun(size, seconds, indexing, cleaning, end_size, int(_number(found[8])))


def _prepare(source: Path, work_dir: Path, configs: dict[str, str]) -> KafkaBroker:
    """A stopped broker that knows the topic and has the given files as its partition."""
    broker = KafkaBroker(NEWEST, work_dir, SETTINGS, JVM_OPTIONS)
    with broker, broker.client() as client:
        client.call("create", topic=TOPIC, partitions=1, configs=configs)
        broker.stop()
    adopt_partition(broker.data_dir, PARTITION, source)
    os.sync()  # so that nothing is written back while it is measured
    return broker


def _number(text: str) -> float:
    return float(text.replace(",", ""))
