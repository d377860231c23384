"""A pipeline's progress as a consumer group's offsets, so that every Kafka tool sees its lag."""

from __future__ import annotations

from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets
from ottla.spark.offsets import Offsets
from ottla.spark.options import ReadOptions

_TIMEOUT_S = 10.0


def commit_progress(options: ReadOptions, group: str, offsets: Offsets) -> None:
    with Cluster.from_options(options.kafka, timeout_s=_TIMEOUT_S) as cluster:
        commit_offsets(cluster, group, {(topic, partition): at for (topic, partition), at in offsets.items()})
