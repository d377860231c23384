"""Images and commands for the tests of the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable

from ottla.cluster.controller import NewTopic, create_topics, register_broker
from ottla.cluster.image import BrokerInfo, ClusterImage
from ottla.cluster.outcome import Outcome
from ottla.config import BrokerConfig

CONFIG = BrokerConfig.from_properties({"num.partitions": "2"})


def broker(node_id: int) -> BrokerInfo:
    return BrokerInfo(node_id, f"host-{node_id}", 9092, rack=f"rack-{node_id}")


def cluster(*node_ids: int) -> ClusterImage:
    """A cluster of these brokers."""
    image = ClusterImage(cluster_id="test")
    for node_id in node_ids or (1,):
        image = register_broker(image, broker(node_id), clean=True).image
    return image


def make(*topics: str | NewTopic, seed: int = 0) -> Callable[[ClusterImage], Outcome]:
    """The command that makes these topics."""
    new = [NewTopic(topic) if isinstance(topic, str) else topic for topic in topics]
    return lambda image: create_topics(image, new, CONFIG, random.Random(f"{seed} {topics}").randrange)


def register(node_id: int, *, clean: bool = True) -> Callable[[ClusterImage], Outcome]:
    return lambda image: register_broker(image, broker(node_id), clean=clean)
