"""What the test suites of Kafka clients said of ottla when they were last run: a section of docs/compatibility.md.

They are too large to be run by `make`; the bugs that they found have tests of their own.
"""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """One run of a suite, or of a part of it."""

    name: str
    brokers: int
    passed: int
    failed: int
    reason: str


SUITES = [
    Suite(
        "franz-go 1.22.2, `pkg/kgo` with 100,000 records: pipelines of groups and transactions, with all balancers, "
        "both protocols of groups, static members",
        1, 144, 0,
        "8 are left out by the suite: 5 of share groups, 2 of SCRAM, 1 for brokers that refuse Produce v2.",
    ),
    Suite("the same with 50,000 records", 3, 144, 0, "As above."),
    Suite(
        "librdkafka 2.14.2, `tests/`, classic groups",
        1, 90, 5,
        "0081, 0109, 0115 and 0119 need ACLs; 0077 wants `segment.bytes` below 1 MiB, which Kafka 4 refuses too. "
        "0098, 0103 and 0129 were changed to ask for one replica, or for segments of 1 MiB.",
    ),
    Suite("the same in quick mode, groups of the newer protocol", 1, 87, 5, "As above."),
    Suite(
        "the same in quick mode, classic groups",
        3, 89, 5,
        "As above; 0081 wants topics with as many replicas as there are brokers.",
    ),
    Suite(
        "kafka-python 3.0.12, `test/integration`",
        1, 49, 8,
        "6 for missing APIs (ACLs, elections, quorum, reassignments, config resources); 2 start a broker with TLS of "
        "their own.",
    ),
    Suite(
        "kafka-go 0.4.51",
        1, 140, 14,
        "10 for missing APIs (ACLs, quotas, SCRAM, reassignments, elections), 2 need a SASL listener, "
        "TestReaderReadCompactedMessage wants `segment.bytes` below 1 MiB, and one part of TestReaderConsumerGroup "
        "fails in the same way with Kafka 4.2. Two more parts of that stop the suite in a helper of its own.",
    ),
    Suite(
        "Rust `rdkafka` 0.38.0",
        1, 67, 0,
        "One that expects no event for a second failed in one of four runs, next to other work.",
    ),
]  # fmt: skip

_BEFORE = """\
## Other people's test suites

The test suites of clients, run against `ottla serve`, with the settings that they ask of a broker (`num.partitions` and
the like). Those of the Go and Rust clients are counted with their tests that need no broker. Whatever failed is in the
last column, with the reason. "Missing APIs" are those of the first row of
[What ottla does not have](#what-ottla-does-not-have): ApiVersions does not name them.

| suite | brokers | passed | failed | why |
| --- | --- | --- | --- | --- |
"""

_AFTER = """
0081 passes once its tests of ACLs, of SCRAM and of a Kerberos setting are taken out, and once it waits for 7 seconds
instead of 6 for sessions of 6 seconds to end. Tests with narrow limits of time (0055, 0086, 0088, 0093) failed now and
then when several ran at once on a busy machine, and pass alone. aiokafka and confluent-kafka do not publish these tests
with their packages; sarama's need five brokers with replication, and a proxy in front of each.

What the suites found, all of it fixed:

- A producer that ended its next transaction before the markers of the last one were written was told that it is fenced,
  where Kafka says CONCURRENT_TRANSACTIONS (franz-go, several brokers).
- Records of a transaction could overtake earlier ones that still waited for the coordinator's answer, and were refused
  as out of order (franz-go, several brokers).
- A topic that was just being made had a leader in Metadata that turned clients away (kafka-go).
- DescribeConfigs told default addresses where `--listen` and `--advertise` had given others (kafka-python).
"""


def section() -> str:
    rows = (f"| {' | '.join(map(str, suite))} |\n" for suite in SUITES)
    return _BEFORE + "".join(rows) + _AFTER
