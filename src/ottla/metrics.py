"""What a broker counts while it works: plain numbers, read when somebody asks.

Counting is an attribute and a `+=`, because it happens for every request. Names and meanings are Kafka's; how they
look at `/metrics` is in server/prometheus.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

# Upper bounds of the buckets for a request's total time, in milliseconds.
TIME_BUCKETS_MS: Final = (
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    25,
    50,
    100,
    250,
    500,
    1000,
    2500,
    5000,
    10000,
    30000,
)
_FIRST_BUCKET_NS: Final = 100_000
# The same for a turn of the event loop, in seconds.
TURN_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_FIRST_TURN_NS: Final = 1_000_000


class TopicMetrics:
    """Of one topic, or of all together."""

    __slots__ = (
        "bytes_in", "bytes_out", "bytes_rejected", "failed_fetch_requests", "failed_produce_requests",
        "fetch_requests", "messages_in", "produce_requests",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0  # unexpected errors only, as in Kafka
        self.failed_fetch_requests = 0

    def add(self, other: TopicMetrics) -> None:
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.bytes_rejected += other.bytes_rejected
        self.produce_requests += other.produce_requests
        self.fetch_requests += other.fetch_requests
        self.failed_produce_requests += other.failed_produce_requests
        self.failed_fetch_requests += other.failed_fetch_requests


class RequestMetrics:
    """Of one API: how many, how large, and where their time went (sums in nanoseconds)."""

    __slots__ = (
        "buckets", "count", "local_ns", "queue_ns", "remote_ns", "request_bytes", "response_bytes",
        "total_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.count = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.queue_ns = 0  # read completely, waiting for its turn
        self.local_ns = 0  # in its handler
        self.remote_ns = 0  # waiting for something: replicas, data, the disk
        self.total_ns = 0
        self.buckets = [0] * (len(TIME_BUCKETS_MS) + 1)

    def record(
        self,
        received_ns: int,
        started_ns: int,
        local_done_ns: int,
        answered_ns: int,
        request_bytes: int,
        response_bytes: int,
    ) -> None:
        """Count one request by the times it passed through the broker."""
        self.count += 1
        self.request_bytes += request_bytes
        self.response_bytes += response_bytes
        self.queue_ns += started_ns - received_ns
        self.local_ns += local_done_ns - started_ns
        self.remote_ns += answered_ns - local_done_ns
        total_ns = answered_ns - received_ns
        self.total_ns += total_ns
        # Most requests fall into the first bucket: that is seen at once.
        self.buckets[0 if total_ns <= _FIRST_BUCKET_NS else bisect_left(TIME_BUCKETS_MS, total_ns / 1e6)] += 1

    def record_run(
        self,
        count: int,
        received_ns: int,
        started_ns: int,
        answered_ns: int,
        request_bytes: int,
        response_bytes: int,
    ) -> None:
        """Count requests that were done together: each took as long as all of them."""
        self.count += count
        self.request_bytes += request_bytes
        self.response_bytes += response_bytes
        self.queue_ns += count * (started_ns - received_ns)
        self.local_ns += count * (answered_ns - started_ns)
        total_ns = answered_ns - received_ns
        self.total_ns += count * total_ns
        bucket = 0 if total_ns <= _FIRST_BUCKET_NS else bisect_left(TIME_BUCKETS_MS, total_ns / 1e6)
        self.buckets[bucket] += count


class TurnTimes:
    """How long turns of the event loop took: a histogram, and the longest."""

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.longest_ns = 0
        self.buckets = [0] * (len(TURN_BUCKETS_S) + 1)

    def record(self, took_ns: int) -> None:
        self.count += 1
        self.total_ns += took_ns
        self.buckets[0 if took_ns <= _FIRST_TURN_NS else bisect_left(TURN_BUCKETS_S, took_ns / 1e9)] += 1
        if took_ns > self.longest_ns:
            self.longest_ns = took_ns


class Gauge(NamedTuple):
    """A number that is read when asked for: one for each set of labels."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[], Mapping[tuple[str, ...], float]]


class Metrics:
    """All that one broker counts."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicMetrics] = {}
        self.elsewhere = TopicMetrics()  # of topics that are deleted, or never were
        self.requests: dict[int, RequestMetrics] = {}
        self.gauges: list[Gauge] = []
        self.connections_accepted = 0
        self.connections_refused = 0
        self.connections_closed = 0
        self.loop_lag_ms = 0.0  # how late the loop's last regular tick came
        self.loop_lag_max_ms = 0.0
        self.turn_duration = TurnTimes()
        self.turn_processor = TurnTimes()

    def topic(self, name: str) -> TopicMetrics:
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicMetrics()
        return found

    def request(self, api_key: int) -> RequestMetrics:
        found = self.requests.get(api_key)
        if found is None:
            found = self.requests[api_key] = RequestMetrics()
        return found

    def forget_topic(self, name: str) -> None:
        """A deleted topic is no longer reported, but counts in the sum of all."""
        gone = self.topics.pop(name, None)
        if gone is not None:
            self.elsewhere.add(gone)

    def known_topic(self, name: str) -> TopicMetrics:
        """Where to count what was asked of a topic; those that nobody made share one, however many names are tried."""
        return self.topics.get(name, self.elsewhere)

    def all_topics(self) -> TopicMetrics:
        """The sum over all topics since the start."""
        total = TopicMetrics()
        total.add(self.elsewhere)
        for counted in list(self.topics.values()):  # a copy: another thread may ask
            total.add(counted)
        return total

    def gauge(
        self, name: str, help_text: str, read: Callable[[], float], labels: Mapping[str, str] | None = None
    ) -> None:
        """Report what `read` returns, under fixed labels."""
        labels = labels or {}
        values = tuple(labels.values())
        self.gauges.append(Gauge(name, help_text, tuple(labels), lambda: {values: read()}))

    def gauges_by(
        self,
        name: str,
        help_text: str,
        labels: tuple[str, ...],
        read: Callable[[], Mapping[tuple[str, ...], float]],
    ) -> None:
        """Report one number for each key that `read` returns; the key holds the labels' values."""
        self.gauges.append(Gauge(name, help_text, labels, read))
