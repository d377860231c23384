"""The numbers that are read rather than counted: sizes of logs, purgatories, sessions, connections."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.api.services import Services
from ottla.metrics import Metrics
from ottla.server.listener import Listener
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
        "kafka_log_offline_dirs", "Log directories that have failed.", lambda: _offline(services, logs)
    )
    metrics.gauge(
        "kafka_server_topics", "Topics of the cluster.", lambda: len(services.metadata.image.topics)
    )


def _offline(services: Services, logs: LogManager) -> int:
    return len(services.config.log_dirs) - len(logs.online_dirs)
