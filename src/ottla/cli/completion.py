"""Names of topics and groups for the shell's completion.

The broker that `-b` or OTTLA_BOOTSTRAP names is asked, for a moment. Whatever goes wrong, there is nothing to complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from ottla.cli.connection_settings import DEFAULT_BOOTSTRAP, parse_settings

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_TIMEOUT_S = 1.0


def complete_topics(context: typer.Context, incomplete: str) -> list[str]:
    return _complete(context, incomplete, lambda admin: list(admin.list_topics(timeout=_TIMEOUT_S).topics))


def complete_groups(context: typer.Context, incomplete: str) -> list[str]:
    return _complete(context, incomplete, _groups)


def _groups(admin: AdminClient) -> list[str]:
    answer = admin.list_consumer_groups(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S)
    return [str(group.group_id) for group in answer.valid]


def _complete(
    context: typer.Context, incomplete: str, names: Callable[[AdminClient], list[str]]
) -> list[str]:
    from confluent_kafka import KafkaException

    try:
        return sorted(name for name in names(_admin(context)) if name.startswith(incomplete))
    except (KafkaException, typer.BadParameter, OSError, ValueError):  # nobody asked for an error
        return []


def _admin(context: typer.Context) -> AdminClient:
    from confluent_kafka.admin import AdminClient

    given = context.params
    bootstrap = given.get("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP") or DEFAULT_BOOTSTRAP
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, "client.id": "ottla", "log_level": 0}
    config.update(parse_settings(given.get("settings") or ()))
    config["error_cb"] = lambda _: None
    return AdminClient(config)
