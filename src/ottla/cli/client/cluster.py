"""`ottla cluster`: the brokers of a cluster, its controller, and how much it holds."""

from __future__ import annotations

from typing import Any

from ottla.cli.client.connection import Kafka, connect
from ottla.cli.command_group import single_command
from ottla.cli.json_text import to_json
from ottla.cli.options import ConnectionOptions, JsonOption
from ottla.cli.tables import Column, print_table
from ottla.words import counted

app = single_command()


@app.command()
def cluster(connection: ConnectionOptions, json: JsonOption = False) -> None:
    """Show brokers, controller and cluster id, and count topics and partitions.

    \b
    Examples:
      ottla cluster
      ottla cluster --json -b broker.example:9092 | jq .cluster_id
    """
    with connect(connection) as kafka:
        fields = _fields(kafka)
    print(to_json(fields)) if json else _print(fields)


def _fields(kafka: Kafka) -> dict[str, Any]:
    about = kafka.cluster
    topics = kafka.admin.list_topics(timeout=kafka.timeout_s).topics
    partitions = [partition for topic in topics.values() for partition in topic.partitions.values()]
    led = [partition.leader for partition in partitions]
    return {
        "cluster_id": about.cluster_id,
        "controller": None if about.controller is None else about.controller.id,
        "brokers": [
            {
                "id": node.id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "leads": led.count(node.id),
            }
            for node in sorted(about.nodes, key=lambda node: node.id)
        ],
        "topics": len(topics),
        "partitions": len(partitions),
        "under_replicated": sum(len(partition.isrs) < len(partition.replicas) for partition in partitions),
        "without_leader": sum(leader < 0 for leader in led),
    }


def _print(fields: dict[str, Any]) -> None:
    print(f"cluster {fields['cluster_id']}")
    counts = f"{counted(fields['topics'], 'topic')}, {counted(fields['partitions'], 'partition')}"
    print(
        f"{counts}, {fields['under_replicated']} under-replicated, {fields['without_leader']} without a leader"
    )
    rows = []
    for broker in fields["brokers"]:
        role = "controller" if broker["id"] == fields["controller"] else ""
        address = f"{broker['host']}:{broker['port']}"
        rows.append((broker["id"], address, broker["rack"] or "-", broker["leads"], role))
    print_table(("broker>", "address", Column("rack", rank=1), "leads>", ""), rows)
