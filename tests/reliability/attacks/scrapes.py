"""A scraper beside thousands of partitions."""

from __future__ import annotations

from tests.reliability.attacks.brokers import Attacked

PARTITIONS = 5_000
SCRAPES = 5
_A_TOPIC = 50  # making them is another story


def attack(broker: Attacked, seed: int, share: float) -> None:
    """`/metrics` again and again."""
    topics = max(6, int(PARTITIONS * share) // _A_TOPIC)
    for number in range(topics):
        broker.create_topic(f"scraped-{number}", _A_TOPIC)
    for _ in range(SCRAPES):
        text = broker.metrics_text()
        assert text.count('topic="scraped-') >= 3 * topics * _A_TOPIC
