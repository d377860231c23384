"""What `ottla produce` does: send, wait for acknowledgements, and count."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from ottla.cli.client.connection import (
    Kafka,
    Trouble,
    complain,
    did_you_mean,
    explain,
    fail,
    join_steps,
    next_step,
    open_client,
)
from ottla.cli.client.produce_input import InputError, InputFiles, NewRecord, Parser
from ottla.cli.client.progress import record_counter
from ottla.words import counted

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_POLL_S = 0.1
_POLL_EVERY = 1000
# A topic that was made a moment ago, or that the broker makes when it is asked for, is there soon.
_TOPIC_WITHIN_S = 1.5
_DEFAULTS = {
    "partitioner": "murmur2_random",  # that of Kafka's own clients
    "message.max.bytes": 1_000_000_000,  # how large a record may be is for the broker to say
    "delivery.report.only.error": True,
    "linger.ms": 5,
}


class Sender:
    """One producer and one topic. `failure` is set as soon as a record is refused."""

    def __init__(self, kafka: Kafka, topic: str, config: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException, Producer

        self._topic = topic
        self._refused = KafkaException
        self._kafka = kafka
        self._trouble = Trouble()
        callbacks = {"error_cb": self._trouble, "on_delivery": self._on_failure}
        self._producer: Producer = open_client(Producer, {**_DEFAULTS, **config, **kafka.config, **callbacks})
        self.sent = 0
        self.failed = 0
        self.failure = ""

    def find_topic(self) -> None:
        """Asks as a producer does, so that a broker which makes topics by itself makes this one."""
        deadline = time.monotonic() + _TOPIC_WITHIN_S
        while True:
            found = self._producer.list_topics(self._topic, timeout=self._kafka.timeout_s)
            error = found.topics[self._topic].error
            if error is None:
                return
            if time.monotonic() > deadline:
                step = next_step(error)
                if error.name() == "UNKNOWN_TOPIC_OR_PART":
                    near = did_you_mean(self._topic, self._kafka.topic_names())
                    step = join_steps(near, f"make it with `ottla topics create {self._topic}`")
                fail(f"{self._topic}: {explain(error)}", step)
            time.sleep(_POLL_S)

    def send(self, record: NewRecord) -> None:
        while not self.failure:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    record.partition,
                    timestamp=record.timestamp_ms,
                    headers=[*record.headers] or None,
                )
            except BufferError:
                self._drain(self.outstanding - 1, self._producer.poll)
                continue
            except self._refused as error:
                self.failed += 1
                self.failure = f"record {self.sent + 1}: {explain(error.args[0])}"
            self.sent += 1
            if self.sent % _POLL_EVERY == 0:
                self.poll()
            return

    def poll(self) -> None:
        self._producer.poll(0)
        if self._trouble.hopeless:
            self.failure = self.failure or explain(self._trouble.hopeless)

    @property
    def outstanding(self) -> int:
        return len(self._producer)

    def finish(self) -> None:
        """Wait for what is on its way, also after a failure."""
        self._drain(0, self._producer.flush)  # does not wait for batches to fill

    def _drain(self, leave: int, wait: Callable[[float], int]) -> None:
        """Wait until no more than that many are on their way; no progress for the whole timeout is a failure."""
        lowest, since = self.outstanding, time.monotonic()
        while (outstanding := self.outstanding) > leave and not self._trouble.hopeless:
            if outstanding < lowest:
                lowest, since = outstanding, time.monotonic()
            elif time.monotonic() - since > self._kafka.timeout_s:
                why = f": {self._trouble}" if self._trouble.last else ""
                self.failure = self.failure or f"no acknowledgement for {self._kafka.timeout_s:g} s{why}"
                break
            wait(_POLL_S)
        self.poll()

    def close(self) -> None:
        """Forget what is not acknowledged, or closing would wait for it."""
        self._producer.purge()
        self._producer.flush(_POLL_S)

    def _on_failure(self, error: KafkaError, _: Message) -> None:
        if error.name() not in ("_PURGE_QUEUE", "_PURGE_INFLIGHT"):
            self.failed += 1
            self.failure = self.failure or explain(error)


def run(
    kafka: Kafka, topic: str, source: InputFiles, parser: Parser, config: dict[str, Any], *, quiet: bool
) -> None:
    sender = Sender(kafka, topic, config)
    sender.find_topic()
    if "-" in source.files and sys.stdin.isatty() and not quiet:
        complain("a record a line; Ctrl-D ends")
    was_stopped = False
    try:
        try:
            _send_all(sender, source, parser, quiet=quiet)
        except KeyboardInterrupt:
            was_stopped = True
        sender.finish()
    except KeyboardInterrupt:
        was_stopped = True  # again: do not wait for the broker
    left = sender.outstanding
    sender.close()
    _tell(sender, topic, left, quiet=quiet)
    if was_stopped:
        raise KeyboardInterrupt
    if sender.failure:
        raise typer.Exit(1)


def _send_all(sender: Sender, source: InputFiles, parser: Parser, *, quiet: bool) -> None:
    with record_counter("sent", shown=not quiet and not sys.stdin.isatty()) as count:
        number = 0
        try:
            for batch in source.batches(idle=sender.poll):
                for data in batch:
                    number += 1
                    record = parser.parse(data)
                    if record is not None:
                        sender.send(record)
                    if sender.failure:
                        return
                sender.poll()
                count(len(batch))
        except InputError as error:
            sender.failure = f"record {number}: {error}"


def _tell(sender: Sender, topic: str, left: int, *, quiet: bool) -> None:
    acknowledged = sender.sent - left - sender.failed
    if sender.failure:
        complain(f"{topic}: {sender.failure}")
    if left or sender.failure:
        done = counted(acknowledged, "record")
        complain(f"{topic}: {done} acknowledged, {sender.failed:,} refused, {left:,} unknown")
    elif not quiet:
        complain(f"{counted(acknowledged, 'record')} sent to {topic}")
