"""`ottla adopt`: take over the log directories of a Kafka broker, and say what was found."""

from __future__ import annotations

import base64
import json
import random
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ottla.cluster.adopt import Adopted, adopt
from ottla.cluster.survey import FoundTopic
from ottla.storage.fs import RealFileSystem

app = typer.Typer()

_HELP = """\
Take over the data of a KRaft Kafka broker: topics keep their names, ids, settings and records.

Give every directory of `log.dirs`; the broker must be stopped. Nothing but ottla.db is written (to the first of
them), and doing it again does no harm. Then `ottla serve --data DIR` serves it. What a Kafka with TLS, SASL or ACLs
has left is only served when `ottla serve` is told that everybody may have it.

\b
Examples:
  ottla adopt /var/lib/kafka
  ottla adopt /disk1/kafka /disk2/kafka --json
"""


@app.command("adopt", help=_HELP)
def command(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR", help="The broker's log directories.")],
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    taken = adopt(RealFileSystem(), [str(path) for path in directories], random.SystemRandom().randrange)
    if as_json:
        typer.echo(json.dumps(_fields(taken)))
    else:
        _print(taken)


def _fields(taken: Adopted) -> dict[str, Any]:
    found = taken.survey
    return {
        "cluster_id": found.cluster_id,
        "node_ids": found.node_ids,
        "log_dirs": found.log_dirs,
        "store": taken.store_path,
        "topics": [
            {
                "name": topic.name,
                "topic_id": _id_text(topic),
                "partitions": sorted(topic.partitions),
                "missing_partitions": topic.holes,
                "config": topic.config,
                "new": topic.name in taken.new_topics,
            }
            for topic in found.topics.values()
        ],
        "broker_configs": {"" if node is None else str(node): c for node, c in found.broker_configs.items()},
        "left_alone": found.left_alone,
        "security": found.security,
        "notes": found.notes,
    }


def _id_text(topic: FoundTopic) -> str:
    """As Kafka's tools write it."""
    assert topic.topic_id is not None
    return base64.urlsafe_b64encode(topic.topic_id.bytes).decode().rstrip("=")


def _print(taken: Adopted) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    found = taken.survey
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False)
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("topic", "partitions", "id", "settings", ""):
        table.add_column(name, justify="right" if name == "partitions" else "left", overflow="fold")
    for topic in found.topics.values():
        settings = " ".join(f"{key}={value}" for key, value in topic.config.items())
        state = "new" if topic.name in taken.new_topics else "known"
        table.add_row(topic.name, str(len(topic.partitions)), _id_text(topic), settings, state)
    nodes = ", ".join(map(str, found.node_ids))
    console.print(f"cluster {found.cluster_id}, node {nodes}: {len(found.topics)} topics", soft_wrap=True)
    console.print(table)
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    done = f"{len(taken.new_topics)} topics taken over" if taken.new_topics else "nothing new"
    console.print(f"{done}; written down in {taken.store_path}", soft_wrap=True)
