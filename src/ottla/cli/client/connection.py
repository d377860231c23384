"""What all client commands share: how to reach a broker, wait for its answers, and tell what went wrong.

The client is confluent-kafka. It is imported when a command runs, so that the others start without it.
"""

from __future__ import annotations

import concurrent.futures
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from ottla.cli.connection_settings import parse_settings
from ottla.cli.options import ConnectionOptions
from ottla.escapes import visible_line

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import DescribeClusterResult, TopicDescription

LOOK_AGAIN_S = 0.02
_POLL_S = 0.05
_SHOWN_WITHIN_S = 5.0
# One of several addresses may refuse before the next is tried, and a broker may be just starting.
_UNREACHABLE_AFTER_S = 1.5

_NEXT_BY_NAME = {
    "UNKNOWN_TOPIC_OR_PART": "`ottla topics list` shows what there is",
    "TOPIC_ALREADY_EXISTS": "--if-not-exists takes that for success",
    "GROUP_ID_NOT_FOUND": "`ottla groups list` shows them",
    "NON_EMPTY_GROUP": "stop its members first; `ottla groups describe` shows them",
    "GROUP_AUTHORIZATION_FAILED": "ask for the right on this group",
    "INVALID_CONFIG": "`ottla configs show topic NAME --all` lists the settings",
    "TOPIC_AUTHORIZATION_FAILED": "ask for the right on this topic",
    "CLUSTER_AUTHORIZATION_FAILED": "ask for the right on this cluster",
    "_AUTHENTICATION": "check sasl.mechanism, sasl.username and sasl.password, given with -X",
    "_SSL": "check security.protocol and ssl.ca.location, given with -X",
    "_RESOLVE": "check the host name after -b",
}
_HOPELESS = ("_AUTHENTICATION", "_SSL", "_FATAL")

Key = TypeVar("Key")


class Trouble:
    """Collects what the client says about its connections while nobody waits for an answer."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None
        self.hopeless: KafkaError | None = None
        self.is_down = False

    def __call__(self, error: KafkaError) -> None:
        if error.name() == "_ALL_BROKERS_DOWN":
            self.is_down = True
        else:
            self.last = error
            if error.name() in _HOPELESS:
                self.hopeless = error

    def __str__(self) -> str:
        return "" if self.last is None else explain(self.last)


class Kafka:
    """A broker that answers. `config` is for further clients of the same cluster."""

    def __init__(self, options: ConnectionOptions) -> None:
        from confluent_kafka.admin import AdminClient

        self.bootstrap = options.bootstrap
        self.timeout_s = options.timeout
        self.config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "ottla",
            "log_level": 0,
        }
        given = dict(parse_settings(options.settings or ()))
        if "debug" in given:
            self.config.pop("log_level")
        self.config.update(given)
        self.trouble = Trouble()
        self.admin: AdminClient = open_client(AdminClient, {**self.config, "error_cb": self.trouble})
        self.cluster = self._first_answer()

    def _first_answer(self) -> DescribeClusterResult:
        started = time.monotonic()
        answer = self.admin.describe_cluster(request_timeout=self.timeout_s)
        while not concurrent.futures.wait((answer,), timeout=_POLL_S).done:
            self.admin.poll(0)
            if self.trouble.hopeless:
                fail(f"{self.bootstrap}: {explain(self.trouble.hopeless)}", next_step(self.trouble.hopeless))
            if self.trouble.is_down and time.monotonic() - started > _UNREACHABLE_AFTER_S:
                break
        if not answer.done() or answer.exception() is not None:
            why = f": {self.trouble}" if self.trouble.last else ""
            fail(
                f"cannot reach a broker at {self.bootstrap}{why}",
                "is it running? start one with `ottla serve`, or name another with -b",
            )
        cluster: DescribeClusterResult = answer.result()
        return cluster

    def settle(self, answers: Mapping[Key, concurrent.futures.Future[Any]]) -> dict[Key, Any]:
        """The result of each, or the KafkaError that stands for it."""
        from confluent_kafka import KafkaException

        settled: dict[Key, Any] = {}
        for key, answer in answers.items():
            try:
                settled[key] = answer.result()
            except KafkaException as error:
                settled[key] = error.args[0]
        return settled

    def describe(self, topics: Sequence[str]) -> dict[str, Any]:
        """A TopicDescription or a KafkaError for each name."""
        from confluent_kafka import TopicCollection

        if not topics:
            return {}
        names = list(dict.fromkeys(topics))
        answers = self.admin.describe_topics(TopicCollection(names), request_timeout=self.timeout_s)
        return self.settle(answers)

    def topic(self, name: str) -> TopicDescription:
        found = self.describe([name])[name]
        if is_error(found):
            fail(f"{name}: {explain(found)}", self.next_step(found, name))
        description: TopicDescription = found
        return description

    def partitions(self, name: str, chosen: Sequence[int] | None) -> list[int]:
        """The chosen partitions of a topic, or all of them."""
        there = [partition.id for partition in self.topic(name).partitions]
        missing = sorted(set(chosen or ()) - set(there))
        if missing:
            fail(f"{name} has no partition {missing[0]}; it has {len(there)}, the first one is 0")
        return sorted(set(chosen)) if chosen else sorted(there)

    def topic_names(self) -> list[str]:
        return sorted(self.admin.list_topics(timeout=self.timeout_s).topics)

    def group_names(self) -> list[str]:
        answer = self.admin.list_consumer_groups(request_timeout=self.timeout_s).result()
        return sorted(str(group.group_id) for group in answer.valid)

    def next_step(self, error: KafkaError, name: str) -> str:
        """What to do about an error of a topic or group: its name may be misspelt."""
        names = {"UNKNOWN_TOPIC_OR_PART": self.topic_names, "GROUP_ID_NOT_FOUND": self.group_names}
        known = names[error.name()]() if error.name() in names else []
        return join_steps(did_you_mean(name, known), next_step(error))


@contextmanager
def connect(options: ConnectionOptions) -> Iterator[Kafka]:
    """A broker to talk to; what the client library raises on the way ends the command with exit code 1."""
    from confluent_kafka import KafkaException

    kafka = Kafka(options)
    try:
        yield kafka
    except KafkaException as error:
        kafka.admin.poll(0)
        why = f" ({kafka.trouble})" if kafka.trouble.last else ""
        fail(explain(error.args[0]) + why, next_step(error.args[0]))


def wait_until_shown(is_shown: Callable[[], bool]) -> None:
    """A broker may hear of a change a moment after the controller made it; the next command shall see it."""
    deadline = time.monotonic() + _SHOWN_WITHIN_S
    while not is_shown() and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN_S)


def open_client(kind: Any, config: dict[str, Any]) -> Any:
    """A client of confluent-kafka; a setting it does not know is wrong usage."""
    from confluent_kafka import KafkaException

    try:
        return kind(config)
    except KafkaException as error:
        raise typer.BadParameter(f"-X: {explain(error.args[0])}") from None


def is_error(result: object) -> bool:
    from confluent_kafka import KafkaError

    return isinstance(result, KafkaError)


def explain(error: KafkaError) -> str:
    """What the client says of an error, without how long it waited in which state."""
    return " ".join(error.str().split(" (after ")[0].split()).rstrip(".")


def next_step(error: KafkaError) -> str:
    return _NEXT_BY_NAME.get(error.name(), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest of the names, as a question; nothing if none is near."""
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else ""


def join_steps(*steps: str) -> str:
    return " ".join(step for step in steps if step)


def complain(message: str, next_step: str = "") -> None:
    """One line on stderr: what is wrong, and what to do."""
    print(visible_line(f"ottla: {message}" + (f" ({next_step})" if next_step else "")), file=sys.stderr)


def fail(message: str, next_step: str = "") -> NoReturn:
    complain(message, next_step)
    raise typer.Exit(1)


def misuse(message: str) -> NoReturn:
    complain(message)
    raise typer.Exit(2)


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if the user says so."""
    if yes:
        return
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort:
        print(file=sys.stderr)
    fail("nothing was deleted", "--yes does it without asking")
