"""The broker's numbers as Prometheus reads them. Imported after the start (late_imports.py) or at the first scrape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ottla.api.registry import APIS
from ottla.metrics import TIME_BUCKETS_MS, TURN_BUCKETS_S, Metrics

_TOPIC_COUNTERS = (
    ("messages_in", "Records appended."),
    ("bytes_in", "Bytes of records appended, as they were sent."),
    ("bytes_out", "Bytes of records sent to consumers."),
    ("bytes_rejected", "Bytes of records that were too large."),
    ("produce_requests", "Produce requests that named the topic."),
    ("fetch_requests", "Fetch requests that named the topic."),
    ("failed_produce_requests", "Produce requests that met an unexpected error."),
    ("failed_fetch_requests", "Fetch requests that met an unexpected error."),
)
_TIMES = (
    ("queue_ns", "request_queue_time_ms", "Time from the last byte of a request to its turn."),
    ("local_ns", "request_local_time_ms", "Time in the request's own handler."),
    ("remote_ns", "request_remote_time_ms", "Time waiting for data, replicas or the disk."),
)


def render(metrics: Metrics) -> bytes:
    """The text that `/metrics` answers with."""
    registry = CollectorRegistry()
    registry.register(_BrokerCollector(metrics))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _BrokerCollector(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._topics()
        yield from self._requests()
        yield from self._connections()
        yield from self._turns()
        yield from self._gauges()

    def _topics(self) -> Iterator[Metric]:
        topics = dict(self._metrics.topics)
        for name, text in _TOPIC_COUNTERS:
            family = CounterMetricFamily(f"kafka_server_brokertopicmetrics_{name}", text, labels=["topic"])
            for topic, counted in topics.items():
                family.add_metric([topic], getattr(counted, name))
            yield family
        total = self._metrics.all_topics()
        for name, text in _TOPIC_COUNTERS:
            yield CounterMetricFamily(
                f"kafka_server_brokertopicmetrics_alltopics_{name}",
                f"{text[:-1]}, over all topics since the start.",
                value=getattr(total, name),
            )

    def _requests(self) -> Iterator[Metric]:
        counts = dict(self._metrics.requests)  # a copy: the loop goes on while this thread reads
        requests = {APIS[key].name: counted for key, counted in counts.items() if key in APIS}
        count = CounterMetricFamily("kafka_network_requests", "Requests answered.", labels=["request"])
        for name, counted in requests.items():
            count.add_metric([name], counted.count)
        yield count
        for field in ("request_bytes", "response_bytes"):
            family = CounterMetricFamily(f"kafka_network_{field}", "Bytes on the wire.", labels=["request"])
            for name, counted in requests.items():
                family.add_metric([name], getattr(counted, field))
            yield family
        for field, metric, text in _TIMES:
            sums = CounterMetricFamily(f"kafka_network_{metric}", text, labels=["request"])
            for name, counted in requests.items():
                sums.add_metric([name], getattr(counted, field) / 1e6)
            yield sums
        total = HistogramMetricFamily(
            "kafka_network_request_total_time_ms",
            "Time from the last byte in to the answer.",
            labels=["request"],
        )
        for name, counted in requests.items():
            total.add_metric([name], _cumulated(TIME_BUCKETS_MS, counted.buckets), counted.total_ns / 1e6)
        yield total

    def _connections(self) -> Iterator[Metric]:
        for name in ("accepted", "refused", "closed"):
            value = getattr(self._metrics, f"connections_{name}")
            yield CounterMetricFamily(f"kafka_server_connections_{name}", f"Connections {name}.", value=value)
        yield GaugeMetricFamily(
            "ottla_event_loop_lag_ms", "How late the loop's last tick came.", value=self._metrics.loop_lag_ms
        )
        yield GaugeMetricFamily(
            "ottla_event_loop_lag_max_ms", "The latest tick since start.", value=self._metrics.loop_lag_max_ms
        )

    def _turns(self) -> Iterator[Metric]:
        for name, text, times in (
            (
                "ottla_event_loop_turn_seconds",
                "How long the loop was busy at a time.",
                self._metrics.turn_duration,
            ),
            (
                "ottla_event_loop_turn_cpu_seconds",
                "The same in processor time.",
                self._metrics.turn_processor,
            ),
        ):
            family = HistogramMetricFamily(name, text)
            family.add_metric([], _cumulated(TURN_BUCKETS_S, times.buckets), times.total_ns / 1e9)
            yield family

    def _gauges(self) -> Iterator[Metric]:
        for gauge in self._metrics.gauges:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
            for labels, value in gauge.read().items():
                family.add_metric(list(labels), value)
            yield family


def _cumulated(upper: Sequence[float], buckets: list[int]) -> list[tuple[str, float]]:
    """Prometheus wants each bucket to count all that lies below it."""
    bounds = [*(str(bound) for bound in upper), "+Inf"]
    below = 0
    rows: list[tuple[str, float]] = []
    for bound, count in zip(bounds, buckets, strict=True):
        below += count
        rows.append((bound, below))
    return rows
