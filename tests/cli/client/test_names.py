"""Client commands on a terminal, with long and hostile names; misspelt names; the shell's completion."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from ottla.testing.embedded import EmbeddedBroker
from tests.cli.terminals import on_terminal
from tests.client_behaviours import DEADLINE_S, Ottla

LONG_TOPIC = "com.example.shop.eu-west-1.production.orders." + "x" * 150
LONG_GROUP = "com.example.shop.readers-of-orders." + "y" * 120
LONG_ID = "com.example.shop.writers-of-orders." + "z" * 120
HOSTILE = b"\x1b]0;owned\x07 \xe2\x80\xaegnp.exe \xc2\x9b31m \xff"
WIDTH = 80


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"auto.create.topics.enable": "false"}) as broker:
        ottla = Ottla(broker.bootstrap)
        ottla.ok("topics", "create", LONG_TOPIC, "orders", "-p", 2)
        config = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        producer = Producer({**config, "transactional.id": LONG_ID})
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        producer.produce("orders", HOSTILE, b"key\x1b", 0, headers=[("head\x1b", HOSTILE)])
        producer.commit_transaction(DEADLINE_S)
        reader = Consumer(
            {**config, "group.id": LONG_GROUP, "client.id": "c" * 60, "auto.offset.reset": "earliest"}
        )
        reader.subscribe([LONG_TOPIC, "orders"])
        while reader.poll(1) is None or not reader.assignment():
            pass
        reader.commit(asynchronous=False)
        yield broker
        reader.close()


@pytest.fixture
def ottla(broker: EmbeddedBroker) -> Ottla:
    return Ottla(broker.bootstrap)


@pytest.mark.parametrize(
    "words",
    [
        ("cluster",),
        ("topics", "list", "--long"),
        ("topics", "describe"),
        ("groups", "list", "--long"),
        ("groups", "describe"),
        ("transactions", "list"),
        ("transactions", "describe", LONG_ID),
        ("configs", "show", "topic", "orders", "--all"),
        ("configs", "show", "broker", "1", "--all"),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_every_table_fits_80_columns_with_long_names(broker: EmbeddedBroker, words: tuple[str, ...]) -> None:
    lines = on_terminal(*words, width=WIDTH, bootstrap=broker.bootstrap).splitlines()
    assert len(lines) > 1
    assert [line for line in lines if len(line) > WIDTH] == []


def test_a_group_shows_topics_offsets_and_lag_in_80_columns(broker: EmbeddedBroker, ottla: Ottla) -> None:
    text = on_terminal("groups", "describe", LONG_GROUP, width=WIDTH, bootstrap=broker.bootstrap)
    (head,) = [line for line in text.splitlines() if "partition" in line]
    assert head.split() == ["topic", "partition", "committed", "end", "lag", "member"]
    assert any(line.split()[:2] == ["orders", "0"] for line in text.splitlines())
    whole = ottla.ok("groups", "describe", LONG_GROUP)
    assert LONG_TOPIC in whole
    assert "c" * 60 in whole


# -- records on a terminal


@pytest.mark.parametrize(
    "options", [(), ("--key", "--headers"), ("--json",), ("--format", "%k %s %h\\n")], ids=" ".join
)
def test_records_do_not_drive_a_terminal(broker: EmbeddedBroker, options: tuple[str, ...]) -> None:
    words = ("consume", "orders", "0", *options)
    text = on_terminal(*words, width=WIDTH, bootstrap=broker.bootstrap)
    assert not set(text) & set("\x1b\x07\u202e\x9b")
    assert "owned" in text or "base64" in text
    if "--json" not in options:
        assert r"\x1b]0;owned\x07 \u202egnp.exe \x9b31m \xff" in text


def test_a_pipe_gets_records_as_they_are_and_so_does_a_terminal_with_raw(
    broker: EmbeddedBroker, ottla: Ottla
) -> None:
    with ottla.start("consume", "orders", "0") as piped:
        assert piped.communicate(timeout=DEADLINE_S)[0] == HOSTILE + b"\n"
    shown = on_terminal(
        "consume", "orders", "0", "--raw", "--format", "%k", width=WIDTH, bootstrap=broker.bootstrap
    )
    assert shown == "key\x1b"


def test_binary_output_is_not_for_a_terminal(broker: EmbeddedBroker) -> None:
    text = on_terminal("consume", "orders", "--binary", width=WIDTH, bootstrap=broker.bootstrap, expected=2)
    assert "add --raw" in " ".join(text.split())


@pytest.mark.parametrize("options", [(), ("--json",)], ids=" ".join)
def test_a_dump_does_not_drive_a_terminal(broker: EmbeddedBroker, options: tuple[str, ...]) -> None:
    words = ("log", "dump", f"{broker.data}/orders-0", "--records")
    text = on_terminal(*words, *options, width=WIDTH)
    assert not set(text) & set("\x1b\x07\u202e\x9b")
    assert "head" in text
    assert "\x1b" in on_terminal(*words, *options, "--raw", width=WIDTH) or options


# -- misspelt names


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "describe", "ordres"),
        ("topics", "offsets", "ordres"),
        ("topics", "delete", "ordres", "--yes"),
        ("topics", "add-partitions", "ordres", "--total", "9"),
        ("configs", "show", "topic", "ordres"),
        ("configs", "set", "topic", "ordres", "retention.ms=1"),
        ("consume", "ordres"),
        ("produce", "ordres", os.devnull),
        ("records", "delete", "ordres", "--yes"),
    ],
    ids=" ".join,
)
def test_a_misspelt_topic_gets_a_suggestion(ottla: Ottla, words: tuple[str, ...]) -> None:
    done = ottla(*words)
    assert done.exit_code == 1
    assert "did you mean orders?" in done.stderr


@pytest.mark.parametrize(
    "words", [("describe",), ("delete", "--yes"), ("reset", "--to", "earliest")], ids=" ".join
)
def test_a_misspelt_group_gets_a_suggestion(ottla: Ottla, words: tuple[str, ...]) -> None:
    command, *options = words
    done = ottla("groups", command, LONG_GROUP[:-1], *options)
    assert done.exit_code == 1
    assert f"did you mean {LONG_GROUP}?" in done.stderr


def test_a_name_like_no_other_gets_no_suggestion(ottla: Ottla) -> None:
    done = ottla("topics", "describe", "Q")
    assert "did you mean" not in done.stderr
    assert "`ottla topics list`" in done.stderr


# -- completion


def completed(line: str, bootstrap: str) -> list[str]:
    """What bash would offer for the last word of a line."""
    environment = {
        **os.environ,
        "OTTLA_BOOTSTRAP": bootstrap,
        "_OTTLA_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    command = [sys.executable, "-m", "ottla"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=DEADLINE_S)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("ottla co", ["configs", "consume"]),
        ("ottla topics de", ["describe", "delete"]),
        ("ottla consume or", ["orders"]),
        ("ottla topics describe orders com", [LONG_TOPIC]),
        ("ottla configs show topic or", ["orders"]),
        ("ottla groups describe com", [LONG_GROUP]),
        ("ottla groups reset x --topic or", ["orders"]),
        ("ottla consume nothing-like-it", []),
    ],
)
def test_commands_topics_and_groups_are_completed(
    broker: EmbeddedBroker, line: str, names: list[str]
) -> None:
    assert sorted(completed(line, broker.bootstrap)) == sorted(names)


def test_the_broker_on_the_line_is_asked(broker: EmbeddedBroker) -> None:
    assert completed(f"ottla consume -b {broker.bootstrap} or", "127.0.0.1:1") == ["orders"]


def test_completion_is_silent_where_there_is_no_broker() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert completed("ottla groups describe a", f"127.0.0.1:{taken.getsockname()[1]}") == []
    assert completed("ottla consume -X nonsense a", "127.0.0.1:1") == []
