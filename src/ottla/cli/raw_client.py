"""Asks brokers what the client library has no call for: requests of the protocol itself, over a plain connection."""

from __future__ import annotations

import socket
from typing import Any

from ottla.cli.client import fail
from ottla.protocol import frame
from ottla.protocol.codec import DecodeError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

_FIND, _METADATA = 3, 9
_TRANSACTION = 1


class RawCluster:
    """The brokers of a cluster. What goes wrong ends the command."""

    def __init__(self, bootstrap: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        host, _, port = bootstrap.split(",")[0].rpartition(":")
        self._first = (host.strip("[]"), int(port) if port.isdigit() else 9092)
        metadata = self.ask(None, _METADATA, MetadataRequest(topics=[]))
        self.nodes = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}

    def ask(self, node_id: int | None, version: int, request: Message) -> Any:
        """The response of a broker, or of the one that was named first."""
        address = self._first if node_id is None else self.nodes[node_id]
        key = request.API_KEY
        sent = b"".join(frame.request_parts(key, version, 1, "ottla", request))
        try:
            with socket.create_connection(address, self._timeout_s) as connection:
                connection.sendall(sent)
                with connection.makefile("rb") as stream:
                    size = int.from_bytes(stream.read(4), "big")
                    answer = stream.read(size)
            return frame.decode_response(key, version, answer)[1]
        except (OSError, DecodeError) as error:
            fail(f"no answer from {address[0]}:{address[1]}: {error}", "is it a broker without TLS and SASL?")

    def coordinator(self, transactional_id: str) -> int:
        """The node that looks after a transactional id."""
        found = self.ask(None, _FIND, FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION))
        check(found.error_code, f"no coordinator of {transactional_id}")
        node_id: int = found.node_id
        return node_id

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (found,) = self.ask(None, _METADATA, request).topics
        check(found.error_code, f"topic {topic}")
        leaders: dict[int, int] = {entry.partition_index: entry.leader_id for entry in found.partitions}
        if partition not in leaders:
            fail(f"topic {topic} has no partition {partition}", "`ottla topics describe` shows what it has")
        return leaders[partition]


def check(code: int, what: str) -> None:
    """End the command if a broker said no."""
    if code:
        fail(f"{what}: {ErrorCode(code).name}", "")
