"""Who may come in: TLS and SASL against a door that has been put before a broker."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from ottla.client.connection import Connection, parse_servers
from ottla.client.scram import Scram
from ottla.client.security import Security
from ottla.errors import AuthenticationError, BrokerError, ConfigError, ConnectionLostError
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing.embedded import EmbeddedBroker
from tests.client.gate import CA, TLS, Gate

TIMEOUT_S = 60.0
PASSWORDS = {"ann": "p=,a ss", "bob": "b"}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        running.create_topic("t")
        yield running


def _topics(gate: Gate, options: dict[str, str], host: str = "127.0.0.1") -> list[str]:
    with Connection.connect(host, gate.port, Security.from_options(options), TIMEOUT_S) as connection:
        answer = connection.send(MetadataRequest(topics=None))
        return [topic.name for topic in answer.topics]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_broker_with_a_trusted_certificate_is_talked_to(broker: EmbeddedBroker, host: str) -> None:
    with Gate(broker.bootstrap, tls=True) as gate:
        options = {"security.protocol": "SSL", "ssl.ca.location": CA}
        assert _topics(gate, options, host) == ["t"]


def test_trust_may_be_given_as_java_names_it(broker: EmbeddedBroker) -> None:
    pem = (TLS / "ca.pem").read_text()
    with Gate(broker.bootstrap, tls=True) as gate:
        located = {"ssl.truststore.location": CA, "ssl.truststore.type": "PEM"}
        for trust in (located, {"ssl.truststore.certificates": pem, "ssl.truststore.type": "PEM"}):
            assert _topics(gate, {"security.protocol": "SSL", **trust}) == ["t"]


def test_a_broker_that_nobody_vouches_for_is_not_trusted(broker: EmbeddedBroker) -> None:
    with Gate(broker.bootstrap, tls=True) as gate:
        with pytest.raises(AuthenticationError, match="not trusted"):
            _topics(gate, {"security.protocol": "SSL"})
        careless = {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}
        assert _topics(gate, careless) == ["t"]


def test_a_certificate_must_be_for_the_host_unless_that_is_not_asked_for(broker: EmbeddedBroker) -> None:
    with Gate(broker.bootstrap, tls=True, address="127.0.0.2") as gate:
        options = {"security.protocol": "SSL", "ssl.ca.location": CA}
        with pytest.raises(AuthenticationError, match=r"127\.0\.0\.2"):
            Connection.connect("127.0.0.2", gate.port, Security.from_options(options), TIMEOUT_S)
        options["ssl.endpoint.identification.algorithm"] = ""
        Connection.connect("127.0.0.2", gate.port, Security.from_options(options), TIMEOUT_S).close()


def test_a_client_without_tls_is_told_that_it_may_lack_it(broker: EmbeddedBroker) -> None:
    with Gate(broker.bootstrap, tls=True) as gate, pytest.raises(ConnectionLostError):
        _topics(gate, {})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("tls", [False, True])
def test_who_knows_the_password_is_let_in(broker: EmbeddedBroker, mechanism: str, tls: bool) -> None:
    with Gate(broker.bootstrap, tls=tls, passwords=PASSWORDS) as gate:
        options = {
            "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
            "ssl.ca.location": CA,
            "sasl.mechanism": mechanism,
            "sasl.username": "ann",
            "sasl.password": "p=,a ss",
        }
        assert _topics(gate, options) == ["t"]
        with pytest.raises(AuthenticationError, match="wrong name or password"):
            _topics(gate, {**options, "sasl.password": "b"})


def test_a_broker_that_does_not_know_the_password_is_an_impostor(broker: EmbeddedBroker) -> None:
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": (
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="bob" password="b";'
        ),
    }
    with Gate(broker.bootstrap, passwords=PASSWORDS) as gate:
        assert _topics(gate, options) == ["t"]
    with (
        Gate(broker.bootstrap, passwords=PASSWORDS, is_impostor=True) as gate,
        pytest.raises(AuthenticationError, match="not who it should be"),
    ):
        _topics(gate, options)


def test_a_mechanism_that_the_broker_lacks_is_named_with_those_it_has(broker: EmbeddedBroker) -> None:
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "bob",
        "sasl.password": "b",
    }
    with (
        Gate(broker.bootstrap, passwords=PASSWORDS, mechanisms=("SCRAM-SHA-512",)) as gate,
        pytest.raises(AuthenticationError, match="does not take PLAIN; it takes SCRAM-SHA-512"),
    ):
        _topics(gate, options)


def test_scram_says_what_the_rfc_says() -> None:
    scram = Scram("SCRAM-SHA-256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    answer = scram.answer(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert answer == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    scram.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    "challenge",
    [
        b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=nonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=nonce2,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1",
        b"r=nonce2,s=!,i=4096",
        b"r=nonce2,i=4096",
        b"\xff",
    ],
)
def test_a_challenge_that_is_wrong_or_weak_is_refused(challenge: bytes) -> None:
    with pytest.raises(AuthenticationError):
        Scram("SCRAM-SHA-256", "user", "pencil", nonce="nonce").answer(challenge)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security.protocol": "TLS"}, "PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism=GSSAPI"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.username and sasl.password"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "x.jks"}, "only PEM"),
        ({"security.protocol": "SSL", "ssl.keystore.type": "PKCS12"}, "only PEM"),
    ],
)
def test_options_that_cannot_be_met_are_refused_with_what_can(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Security.from_options(options)


def test_certificates_that_cannot_be_read_are_told() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Security(tls=True, ca_file="/nowhere").context()


def test_secrets_travel_but_are_not_shown() -> None:
    security = Security(mechanism="PLAIN", username="ann", password="secret")
    assert pickle.loads(pickle.dumps(security)) == security
    assert "secret" not in repr(security)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        ("a", [("a", 9092)]),
        ("[::1]:3", [("::1", 3)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_addresses_are_read(text: str, found: list[tuple[str, int]]) -> None:
    assert parse_servers(text) == found


@pytest.mark.parametrize("text", ["", " , ", "a:b", ":1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BrokerError):
        parse_servers(text)
