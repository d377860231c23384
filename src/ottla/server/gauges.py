"""The numbers that are read rather than counted: sizes of logs, purgatories, sessions, connections.

They are read on another thread than the one that changes them, which goes on meanwhile: a number may be a moment old,
and what is gone through is a copy.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping

import ottla
from ottla.api.services import Services
from ottla.metrics import Metrics
from ottla.records import kernel
from ottla.server.listener import Listener
from ottla.storage.fs import error_name
from ottla.storage.log_manager import LogManager


def register(metrics: Metrics, listener: Listener, services: Services, logs: LogManager) -> None:
    """Everything a broker reports besides its counters."""

    def log_numbers(name: str) -> Mapping[tuple[str, ...], float]:
        return {(tp.topic, str(tp.partition)): getattr(log, name) for tp, log in logs.logs.items()}

    by_partition = ("topic", "partition")
    for attribute, metric, text in (
        ("size_bytes", "kafka_log_size_bytes", "Bytes in a partition's log."),
        ("start_offset", "kafka_log_start_offset", "The first offset of a partition's log."),
        ("end_offset", "kafka_log_end_offset", "The offset after the last of a partition's log."),
    ):
        metrics.gauges_by(metric, text, by_partition, lambda name=attribute: log_numbers(name))  # type: ignore[misc]
    metrics.gauges_by(
        "ottla_log_missing_offsets",
        "Offsets of a partition that are on record as lost, until they are acknowledged.",
        by_partition,
        lambda: {(tp.topic, str(tp.partition)): count for tp, count in logs.missing_offsets().items()},
    )
    metrics.gauges_by(
        "kafka_server_purgatory_size",
        "Requests that wait, by what for.",
        ("purgatory",),
        lambda: {(name,): float(size) for name, size in services.replicas.purgatories.sizes().items()},
    )
    sessions = services.fetch_sessions
    metrics.gauge("kafka_server_fetch_sessions", "Fetch sessions.", lambda: len(sessions))
    metrics.gauge(
        "kafka_server_fetch_session_partitions", "Partitions in fetch sessions.", lambda: sessions.partitions
    )
    metrics.gauge("kafka_server_connections", "Open connections.", lambda: listener.connections)
    metrics.gauge(
        "kafka_network_socketserver_memorypoolused",
        "Bytes of memory that requests hold, of queued.max.request.bytes.",
        lambda: listener.budget.used_bytes,
    )
    _register_log_dirs(metrics, services, logs)
    metrics.gauge(
        "ottla_build_info",
        "What runs here; the value says nothing.",
        lambda: 1.0,
        {
            "kernel": "compiled" if kernel.COMPILED else "interpreted",
            "python": platform.python_version(),
            "version": ottla.__version__,
        },
    )
    metrics.gauge(
        "kafka_server_topics", "Topics of the cluster.", lambda: len(services.metadata.image.topics)
    )


def _register_log_dirs(metrics: Metrics, services: Services, logs: LogManager) -> None:
    """Which log directories, and which partitions with them, are offline or full, and why."""

    def offline_dirs() -> float:
        return len(logs.configured_dirs) - len(logs.online_dirs)

    def with_state(state: str) -> Mapping[tuple[str, ...], float]:
        there = {trouble.path for trouble in logs.troubles if trouble.state == state}
        return {(path,): float(path in there) for path in logs.configured_dirs}

    def troubles() -> Mapping[tuple[str, ...], float]:
        return {
            (t.path, t.state, error_name(t.error), t.error.filename or "", t.doing): 1.0
            for t in logs.troubles
        }

    def offline_partitions() -> Mapping[tuple[str, ...], float]:
        return {(key.topic, str(key.partition)): 1.0 for key in services.replicas.offline_partitions()}

    metrics.gauge("kafka_log_offline_dirs", "Log directories that have failed.", offline_dirs)
    metrics.gauge(
        "kafka_log_logmanager_offlinelogdirectorycount", "Log directories that have failed.", offline_dirs
    )
    for name, state in (
        ("kafka_log_logmanager_logdirectoryoffline", "offline"),
        ("ottla_log_directory_full", "full"),
    ):
        metrics.gauges_by(
            name,
            f"1 for a log directory that is {state}.",
            ("logDirectory",),
            lambda state=state: with_state(state),  # type: ignore[misc]
        )
    metrics.gauges_by(
        "ottla_log_directory_trouble",
        "What is wrong with a log directory; nothing, while nothing is.",
        ("logDirectory", "state", "error", "file", "doing"),
        troubles,
    )
    metrics.gauge(
        "kafka_server_replicamanager_offlinereplicacount",
        "Partitions whose log directory is offline.",
        lambda: len(services.replicas.offline_partitions()),
    )
    metrics.gauges_by(
        "ottla_partition_offline", "1 for each of them.", ("topic", "partition"), offline_partitions
    )
