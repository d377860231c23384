"""How far a stream has come, committed to a consumer group: every Kafka tool then shows its lag.

Spark keeps a stream's progress in its checkpoint and tells its source of a finished batch only with the next one, so
never of the last. A listener hears of every batch:

    spark.streams.addListener(GroupProgress({"kafka.bootstrap.servers": "...", "kafka.group.id": "orders-to-lake"}))

The group has no members, and nobody reads from where it stands: it is there to be looked at.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.cluster import Cluster, client_options
from ottla.client.groups import commit_offsets
from ottla.errors import BrokerError, ConfigError
from ottla.spark.offsets import Offsets
from ottla.spark.read.stream import Position

_log = logging.getLogger(__name__)
_TIMEOUT_S = 10.0


def commit_progress(options: Mapping[str, str], offsets: Offsets, group: str | None = None) -> None:
    """Commit where a reader stands: for each partition the offset of the next record to be read.

    The options are those of a read, with `kafka.bootstrap.servers` and, unless a group is given, `kafka.group.id`.
    """
    name = group or client_options(options).get("group.id")
    if not name:
        raise ConfigError("no group to commit progress to: give kafka.group.id")
    with Cluster.from_options(options, timeout_s=_TIMEOUT_S) as cluster:
        commit_offsets(cluster, name, offsets)


class GroupProgress(StreamingQueryListener):
    """Commits the progress of one query by its name, or of every query that reads with format("ottla")."""

    def __init__(self, options: Mapping[str, str], query_name: str | None = None) -> None:
        self._options = dict(options)
        self._query_name = query_name
        if not client_options(self._options).get("group.id"):
            raise ConfigError("no group to commit progress to: give kafka.group.id")

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if self._query_name is not None and progress.name != self._query_name:
            return
        offsets: Offsets = {}
        for source in progress.sources:
            offsets.update(read_position(source.endOffset))
        if not offsets:
            return
        try:
            commit_progress(self._options, offsets)
        except BrokerError as error:  # the next batch commits it too, and the checkpoint has it
            _log.warning("the progress of a query was not committed to its group: %s", error)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def read_position(text: str | None) -> Offsets:
    """The offsets in what a source says of its position; of sources other than ours none."""
    try:
        return Position.from_json(json.loads(text or "{}")).offsets
    except (ValueError, TypeError, AttributeError):
        return {}
