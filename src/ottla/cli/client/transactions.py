"""`ottla transactions`: list them, look at one, and end one that hangs."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from ottla.cli.client.connection import fail
from ottla.cli.client.raw_requests import raw_cluster
from ottla.cli.command_group import command_group
from ottla.cli.json_text import to_json
from ottla.cli.options import ConnectionOptions, JsonOption, TopicArgument, YesOption
from ottla.cli.tables import Column, print_facts, print_table
from ottla.client.cluster import TRANSACTION
from ottla.client.failures import check
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

app = command_group("List and describe transactions, and end one that hangs.")

_NO_TRANSACTION = -1
_PATTERNS_SINCE = 2
StateOption = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", help="Only those in this state. May be repeated."),
]
PatternOption = Annotated[
    str | None,
    typer.Option(
        "--transactional-id-pattern",
        "--pattern",
        metavar="REGEX",
        help="Only those whose whole id is what this regular expression (of RE2) says.",
    ),
]


@app.command("list")
def list_all(
    connection: ConnectionOptions,
    state: StateOption = None,
    pattern: PatternOption = None,
    json: JsonOption = False,
) -> None:
    """List all transactional ids that brokers know, with the state of their latest transaction.

    \b
    Example:
      ottla transactions list --state Ongoing --pattern 'orders-.*'
    """
    found: list[dict[str, Any]] = []
    request = ListTransactionsRequest(state_filters=state or [], transactional_id_pattern=pattern)
    with raw_cluster(connection) as cluster:
        for node_id in cluster.nodes():
            if pattern and cluster.connection(node_id).version(ListTransactionsRequest) < _PATTERNS_SINCE:
                fail(f"broker {node_id} is too old to pick transactions by a pattern", "leave --pattern out")
            answer = cluster.ask(node_id, request)
            check(answer.error_code, f"broker {node_id}")
            if answer.unknown_state_filters:
                fail(f"there is no state {answer.unknown_state_filters[0]}", "try Ongoing, or CompleteCommit")
            found += (
                {
                    "transactional_id": entry.transactional_id,
                    "coordinator": node_id,
                    "producer_id": entry.producer_id,
                    "state": entry.transaction_state,
                }
                for entry in answer.transaction_states
            )
    found.sort(key=lambda entry: str(entry["transactional_id"]))
    if json:
        for entry in found:
            print(to_json(entry))
        return
    coordinator = Column("coordinator", right=True, rank=1)
    names = ("transactional id", coordinator, "producer id>", "state")
    print_table(names, [tuple(entry.values()) for entry in found])


@app.command()
def describe(
    connection: ConnectionOptions,
    transactional_id: Annotated[str, typer.Argument(metavar="ID", help="The transactional id.")],
    json: JsonOption = False,
) -> None:
    """Show the latest transaction of an id: its producer, its age, and its partitions.

    \b
    Example:
      ottla transactions describe payments
    """
    with raw_cluster(connection) as cluster:
        node_id = cluster.coordinator(TRANSACTION, transactional_id)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (found,) = cluster.ask(node_id, request).transaction_states
        check(found.error_code, transactional_id)
    started_ms = found.transaction_start_time_ms
    fields = {
        "transactional_id": transactional_id,
        "state": found.transaction_state,
        "coordinator": node_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.transaction_timeout_ms,
        "age_ms": int(time.time() * 1000) - started_ms if started_ms >= 0 else None,
        "partitions": [
            f"{topic.topic}-{partition}" for topic in found.topics for partition in topic.partitions
        ],
    }
    if json:
        print(to_json(fields))
        return
    fields["partitions"] = " ".join(fields["partitions"]) or "-"
    print_facts([(name, "-" if value is None else value) for name, value in fields.items()])


@app.command()
def abort(
    connection: ConnectionOptions,
    topic: TopicArgument,
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition.")],
    start_offset: Annotated[
        int, typer.Option(metavar="OFFSET", min=0, help="Where the transaction begins in it.")
    ],
    yes: YesOption = False,
) -> None:
    """Abort a transaction that hangs in a partition.

    Its coordinator knows nothing of it, and therefore it never ends.

    \b
    Example:
      ottla transactions abort orders 3 --start-offset 1042
    """
    with raw_cluster(connection) as cluster:
        leader = cluster.leader((topic, partition))
        wanted = TopicRequest(name=topic, partition_indexes=[partition])
        answer = cluster.ask(leader, DescribeProducersRequest(topics=[wanted])).topics[0].partitions[0]
        check(answer.error_code, f"{topic}-{partition}")
        begun = {one.current_txn_start_offset: one for one in answer.active_producers}
        begun.pop(_NO_TRANSACTION, None)
        producer = begun.get(start_offset)
        if producer is None:
            open_ones = ", ".join(f"{at} (producer {begun[at].producer_id})" for at in sorted(begun))
            hint = f"open ones begin at {open_ones}" if begun else "none is open there"
            fail(f"no transaction begins at offset {start_offset} of {topic}-{partition}", hint)
        if not yes:
            typer.confirm(f"Abort the transaction of producer {producer.producer_id}?", abort=True)
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            coordinator_epoch=max(producer.coordinator_epoch, 0),
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        (written,) = cluster.ask(leader, WriteTxnMarkersRequest(markers=[marker])).markers
        check(written.topics[0].partitions[0].error_code, f"{topic}-{partition}")
        print(f"aborted the transaction of producer {producer.producer_id} in {topic}-{partition}")
