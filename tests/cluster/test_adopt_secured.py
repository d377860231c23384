"""What was taken from a Kafka that was guarded is not served openly by mistake.

The Kafkas of the corpus were open; what a guarded one would have told its controller is appended to their logs.
"""

from __future__ import annotations

import random
import struct
import uuid
from pathlib import Path

import pytest

from ottla.cluster.adopt import SECURED_FILE, adopt, release
from ottla.cluster.kraft_log import METADATA_DIR, read_kraft_metadata
from ottla.errors import ConfigError
from ottla.records.builder import NewRecord, build_batch
from ottla.storage.fs import RealFileSystem
from ottla.testing.embedded import EmbeddedBroker
from tests import corpus

FS = RealFileSystem()
ACL = uuid.UUID(int=7)


def text(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


def registration(node: int, *endpoints: tuple[str, int], version: int = 3) -> bytes:
    """A broker tells its listeners when it starts; version 2 and later say whether it comes from ZooKeeper."""
    body = struct.pack(">i", node) + (b"\0" if version >= 2 else b"") + bytes(16) + struct.pack(">q", 5)
    body += bytes([len(endpoints) + 1])
    for name, protocol in endpoints:
        body += text(name) + text("kafka.example.org") + struct.pack(">Hh", 9093, protocol) + b"\0"
    return bytes([1, 0, version]) + body + b"\1\0\0\0\0"


def unregistration(node: int) -> bytes:
    return bytes([1, 1, 0]) + struct.pack(">iq", node, 5) + b"\0"


def acl(kind: int) -> bytes:
    rest = b"\2" + text("orders") + b"\3" + text("User:alice") + text("*") + b"\3\3" if kind == 18 else b""
    return bytes([1, kind, 0]) + ACL.bytes + rest + b"\0"


def scram(kind: int, user: str) -> bytes:
    rest = text("salt") + text("stored") + text("server") + struct.pack(">i", 4096) if kind == 11 else b""
    return bytes([1, kind, 0]) + text(user) + b"\1" + rest + b"\0"


def setting(key: str, value: str) -> bytes:
    return bytes([1, 4, 0, 4]) + text("1") + text(key) + text(value) + b"\0"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return corpus.unpack("kafka-4.2.0-stopped", tmp_path)


def tell_controller(data: Path, *values: bytes) -> None:
    batch = build_batch(
        [NewRecord(0, None, value) for value in values], base_offset=1_000_000, leader_epoch=1
    )
    with (data / METADATA_DIR / "00000000000000000000.log").open("ab") as log:
        log.write(batch)


def found(data: Path, *values: bytes) -> list[str]:
    tell_controller(data, *values)
    known = read_kraft_metadata(FS, [str(data)])
    assert known is not None
    assert known.damage is None
    return known.security


def test_an_open_kafka_leaves_no_mark(data: Path) -> None:
    taken = adopt(FS, [str(data)], random.Random(1).randrange)
    assert taken.survey.security == []
    assert not (data / SECURED_FILE).exists()


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_listeners_that_are_not_plaintext_are_found(data: Path, version: int) -> None:
    endpoints = (("PLAINTEXT", 0), ("OUTSIDE", 3))
    assert found(data, registration(1, *endpoints, version=version)) == [
        "listener OUTSIDE://kafka.example.org:9093 (SASL_SSL) of broker 1"
    ]


def test_what_a_broker_said_last_counts(data: Path) -> None:
    assert found(data, registration(1, ("A", 1)), registration(1, ("A", 0))) == []
    assert found(data, registration(2, ("A", 2)), unregistration(2)) == []


def test_acls_passwords_and_settings_are_found_unless_they_were_removed(data: Path) -> None:
    assert found(data, acl(18), scram(11, "alice"), setting("listener.name.a.ssl.key.password", "x")) == [
        "ACLs: 1",
        "SCRAM passwords of alice",
        "settings listener.name.a.ssl.key.password",
    ]
    assert found(data, acl(19), scram(22, "alice")) == ["settings listener.name.a.ssl.key.password"]


def test_a_broker_refuses_to_serve_it_until_it_is_told_to(data: Path) -> None:
    tell_controller(data, registration(1, ("OUTSIDE", 3)))
    taken = adopt(FS, [str(data)], random.Random(1).randrange)
    assert taken.survey.security
    assert any("--set ottla.serve.open=true" in note for note in taken.survey.notes)
    for _ in range(2):
        refused = pytest.raises(ConfigError, match=r"OUTSIDE://.*SASL_SSL.*--set ottla\.serve\.open=true")
        with refused, EmbeddedBroker(data=data):
            pass
        adopt(FS, [str(data)], random.Random(1).randrange)  # a second time changes nothing about it
    with EmbeddedBroker({"ottla.serve.open": True}, data=data) as broker:
        assert "wide" in broker.topics()


def test_giving_it_back_takes_the_mark_away(data: Path) -> None:
    tell_controller(data, acl(18))
    adopt(FS, [str(data)], random.Random(1).randrange)
    assert f"{data}/{SECURED_FILE}" in release(FS, [str(data)]).removed
    assert not (data / SECURED_FILE).exists()
