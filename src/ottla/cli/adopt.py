"""`ottla adopt`: take over the log directories of a Kafka broker, and say what was found."""

from __future__ import annotations

import base64
import random
from typing import Any

import typer

from ottla.cli.command_group import single_command
from ottla.cli.json_text import to_json
from ottla.cli.options import LogDirsArgument, OneJsonOption
from ottla.cli.tables import Column, print_table
from ottla.cli.terminal import say
from ottla.cluster.adopt import Adopted, adopt
from ottla.cluster.survey import FoundTopic
from ottla.storage.fs import RealFileSystem
from ottla.words import counted

app = single_command()

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
def command(directories: LogDirsArgument, json: OneJsonOption = False) -> None:
    taken = adopt(RealFileSystem(), [str(path) for path in directories], random.SystemRandom().randrange)
    if json:
        typer.echo(to_json(_fields(taken)))
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
    found = taken.survey
    nodes = ", ".join(map(str, found.node_ids))
    say(f"cluster {found.cluster_id}, node {nodes}: {counted(len(found.topics), 'topic')}")
    rows = []
    for topic in found.topics.values():
        settings = " ".join(f"{key}={value}" for key, value in topic.config.items())
        state = "new" if topic.name in taken.new_topics else "known"
        rows.append((topic.name, len(topic.partitions), _id_text(topic), settings, state))
    if rows:
        print_table(("topic", "partitions>", Column("id", rank=1), "settings", ""), rows)
    for note in found.notes:
        say(f"note: {note}")
    done = f"{counted(len(taken.new_topics), 'topic')} taken over" if taken.new_topics else "nothing new"
    say(f"{done}; written down in {taken.store_path}")
