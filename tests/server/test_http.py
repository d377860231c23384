"""The small HTTP server: whom it answers, and how it ends."""

from __future__ import annotations

import http.client
import logging
import socket
from collections.abc import Iterator

import pytest

from ottla.testing.embedded import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(http=True) as running:
        yield running


def ask(broker: EmbeddedBroker, method: str, path: str, host: str | None = None) -> tuple[int, str, bytes]:
    """Status, Content-Length, and what follows the head, as they come over the wire."""
    address = broker.broker.http
    assert address is not None
    lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), "", ""]
    with socket.create_connection((address.host, address.port), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode())
        with connection.makefile("rb") as stream:
            status = int(stream.readline().split()[1])
            headers = http.client.parse_headers(stream)
            return status, headers["Content-Length"], stream.read()


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:9644", "127.0.0.1:1", "127.1.2.3", "[::1]:9644", None]
)
def test_names_of_this_machine_are_answered(broker: EmbeddedBroker, host: str | None) -> None:
    assert ask(broker, "GET", "/healthz", host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9644", "127.0.0.1.evil.example", "10.0.0.1", ""]
)
def test_a_name_that_a_page_made_point_here_is_refused(broker: EmbeddedBroker, host: str) -> None:
    assert ask(broker, "GET", "/metrics", host)[0] == 421


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/nothing"])
def test_head_has_the_length_and_no_body(broker: EmbeddedBroker, path: str) -> None:
    status, length, body = ask(broker, "HEAD", path, "localhost")
    assert body == b""
    assert int(length) > 0
    assert status == ask(broker, "GET", path, "localhost")[0]


def test_a_stop_with_open_connections_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), EmbeddedBroker(http=True) as broker:
        address = broker.broker.http
        assert address is not None
        open_ones = [socket.create_connection((address.host, address.port), timeout=60) for _ in range(3)]
        open_ones[0].sendall(b"GET /metrics HT")
        assert ask(broker, "GET", "/healthz", "localhost")[0] == 200  # so the others are accepted too
    for connection in open_ones:
        assert connection.recv(1) == b""
        connection.close()
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING] == []
