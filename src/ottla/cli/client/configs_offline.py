"""`ottla configs --data`: the settings of a cluster that is stopped, with the checks and the words of one that runs.

What a broker's own file or command line says is not known here: values that come from there show as defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from ottla.cli.client.configs_work import print_entries, say_changed
from ottla.cli.client.connection import fail
from ottla.cluster import config_changes
from ottla.cluster.config_changes import Alteration, Alterations, AlterOp, BrokerAlterations, TopicAlterations
from ottla.cluster.config_views import (
    ConfigView,
    broker_config_views,
    cluster_config_views,
    topic_config_views,
)
from ottla.cluster.image import ClusterImage
from ottla.cluster.sqlite import SqliteStore
from ottla.cluster.stopped import stopped_store
from ottla.config import BrokerConfig
from ottla.errors import LogDirLockedError
from ottla.storage.fs import RealFileSystem

ALL_BROKERS = "default"


class _Entry(NamedTuple):
    """A setting, in the client library's words."""

    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool


def show(data: Path, of: str, name: str, *, everything: bool, as_json: bool) -> None:
    with _stopped(data) as store:
        views = _views(store.load(), of, name, data)
    entries = {
        view.name: _Entry(view.name, view.value, view.source, view.read_only, view.sensitive)
        for view in views
    }
    print_entries(of, entries, everything=everything or name == ALL_BROKERS, as_json=as_json)


def _views(image: ClusterImage, of: str, name: str, data: Path) -> list[ConfigView]:
    _check_there(image, of, name, data)
    if of == "topic":
        return topic_config_views(image, name, _any_broker(image), {})
    if name == ALL_BROKERS:
        return cluster_config_views(image)
    return broker_config_views(image, int(name), {})


def alter(data: Path, of: str, name: str, changes: Mapping[str, str | None], *, validate_only: bool) -> None:
    """Set what has a value, take back what has none."""
    listed = [
        Alteration(key, value, AlterOp.DELETE if value is None else AlterOp.SET)
        for key, value in changes.items()
    ]
    with _stopped(data) as store:
        image = store.load()
        _check_there(image, of, name, data)
        node_id = int(name) if of == "broker" and name != ALL_BROKERS else _any_broker(image)
        config = BrokerConfig.from_properties({"node.id": str(node_id)})
        wanted: Alterations = TopicAlterations(name, listed)
        if of == "broker":
            wanted = BrokerAlterations(None if name == ALL_BROKERS else node_id, listed)
        _, outcome = store.update(
            lambda image: config_changes.alter_configs(image, [wanted], config, validate_only=validate_only)
        )
    (result,) = outcome.results
    if not result.ok:
        fail(
            f"{of} {name}: {result.error_message}",
            f"`ottla configs show {of} {name} --all` lists the settings",
        )
    say_changed(of, name, validate_only=validate_only)


@contextmanager
def _stopped(data: Path) -> Iterator[SqliteStore]:
    try:
        with stopped_store(RealFileSystem(), str(data)) as store:
            yield store
    except LogDirLockedError as error:
        fail(str(error), "stop that broker first, or leave --data out: then the broker is asked itself")


def _any_broker(image: ClusterImage) -> int:
    return min(image.brokers, default=1)


def _check_there(image: ClusterImage, of: str, name: str, data: Path) -> None:
    if of == "topic":
        if name not in image.topics:
            near = get_close_matches(name, image.topics, 1)
            fail(f"{name}: there is no such topic in {data}", f"did you mean {near[0]}?" if near else "")
        return
    there = [str(node) for node in sorted({*image.brokers, *(image.broker_configs.keys() - {None})})]  # type: ignore[type-var]
    if name not in (*there, ALL_BROKERS):
        fail(f"there is no broker {name}", f"there are: {', '.join((*there, ALL_BROKERS))}")
