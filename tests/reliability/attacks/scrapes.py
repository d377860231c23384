"""A scraper beside thousands of partitions."""

from __future__ import annotations

import urllib.request

from ottla.testing.embedded import EmbeddedBroker

PARTITIONS = 5_000
SCRAPES = 5


def attack(broker: EmbeddedBroker, seed: int, share: float) -> None:
    """`/metrics` again and again. Making the topic is not what is measured here."""
    partitions = max(300, int(PARTITIONS * share))
    broker.create_topic("scraped", partitions)
    broker.worst_turn_ms()
    for _ in range(SCRAPES):
        with urllib.request.urlopen(f"http://{broker.broker.http}/metrics") as answer:
            text = answer.read().decode()
        assert text.count('kafka_log_end_offset{partition="') == text.count(
            'kafka_log_size_bytes{partition="'
        )
        assert text.count('topic="scraped"') >= 3 * partitions
