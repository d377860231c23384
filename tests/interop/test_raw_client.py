"""The raw client against real Kafka: with TLS and SASL, in old and new versions, and rows into topics exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ottla.client import groups, reading
from ottla.client.cluster import Cluster
from ottla.client.producing import Producer
from ottla.errors import AuthenticationError, ProducerFencedError
from ottla.records.compression.codec import Codec
from ottla.spark.options import WriteOptions, read_options
from ottla.spark.read import plan
from ottla.spark.write.sending import Sent, Turn, send_rows
from tests.client.gate import CA, TLS
from tests.client.sending import batch_of
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.ports import free_ports

TIMEOUT_S = 120
PASSWORD = "p=,ss"
LOGIN = "org.apache.kafka.common.security"


class SecureBroker(KafkaBroker):
    """A broker with every kind of listener."""

    def _kraft_settings(self, controller_port: int) -> dict[str, str]:
        settings = super()._kraft_settings(controller_port)
        self.doors = {name: f"127.0.0.1:{free_ports(1)}" for name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL")}
        more = [f"{name}://{address}" for name, address in self.doors.items()]
        settings["listeners"] += "".join(f",{entry}" for entry in more)
        settings["advertised.listeners"] = ",".join((f"PLAINTEXT://{self.servers}", *more))
        names = ("PLAINTEXT", *self.doors)
        settings["listener.security.protocol.map"] = ",".join(
            ("CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in names))
        )
        settings["inter.broker.listener.name"] = "PLAINTEXT"
        settings["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.location"] = str(TLS / "server.pem")
        for name in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{name}"
            plain = f'{LOGIN}.plain.PlainLoginModule required user_ann="{PASSWORD}";'
            settings[f"{prefix}.plain.sasl.jaas.config"] = plain
            for size in (256, 512):
                scram = f"{LOGIN}.scram.ScramLoginModule required;"
                settings[f"{prefix}.scram-sha-{size}.sasl.jaas.config"] = scram
        return settings


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with SecureBroker(NEWEST, tmp_path_factory.mktemp("secure") / "work") as broker:
        admin = AdminClient({"bootstrap.servers": broker.servers})
        _create(admin, "t", 3)
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            made = admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion("ann", info, PASSWORD.encode())]
            )
            made["ann"].result(TIMEOUT_S)
        for name in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            await_password(broker, name)
        yield broker


def _create(admin: AdminClient, name: str, partitions: int) -> None:
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(TIMEOUT_S)


def await_password(kafka: SecureBroker, mechanism: str) -> None:
    """The broker hears of a new password after its controller has answered."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with Cluster.from_options(_options(kafka, "SASL_PLAINTEXT", mechanism)) as cluster:
                cluster.topics()
            return
        except AuthenticationError:
            assert time.monotonic() < deadline


DOORS = [("SSL", None)] + [
    (protocol, mechanism)
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
]


def _options(
    kafka: SecureBroker, protocol: str, mechanism: str | None, password: str = PASSWORD
) -> dict[str, str]:
    options = {
        "kafka.bootstrap.servers": kafka.doors[protocol],
        "kafka.security.protocol": protocol,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": CA,
    }
    if mechanism is not None:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        options["kafka.sasl.mechanism"] = mechanism
        options["kafka.sasl.jaas.config"] = f'{LOGIN}.{module} required username="ann" password="{password}";'
    return options


@pytest.mark.parametrize(("protocol", "mechanism"), DOORS)
def test_every_door_of_kafka_opens_to_who_knows_the_password(
    kafka: SecureBroker, protocol: str, mechanism: str | None
) -> None:
    with Cluster.from_options(_options(kafka, protocol, mechanism), timeout_s=TIMEOUT_S) as cluster:
        before = reading.end_offsets(cluster, [("t", 0)])["t", 0]
        producer = Producer(cluster)
        producer.send({("t", 0): batch_of(b"a", b"b")})
        producer.flush()
        fetched = reading.fetch_raw(cluster, ("t", 0), before)
        assert fetched.next_offset == before + 2
        groups.commit_offsets(cluster, f"g-{protocol}-{mechanism}", {("t", 0): before})
        found = groups.fetch_offsets(cluster, f"g-{protocol}-{mechanism}")
        assert found == {("t", 0): groups.Committed(before)}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_lets_nobody_in_with_a_wrong_password(kafka: SecureBroker, mechanism: str) -> None:
    options = _options(kafka, "SASL_SSL", mechanism, "wrong")
    with Cluster.from_options(options) as cluster, pytest.raises(AuthenticationError):
        cluster.topics()


def test_rows_are_written_to_kafka_exactly_once_and_read_back(kafka: SecureBroker, rng: Random) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    _create(admin, "once", 3)
    options = _options(kafka, "SASL_SSL", "SCRAM-SHA-512")
    plain = {name.removeprefix("kafka."): value for name, value in options.items()}
    written: list[bytes] = []
    for number in range(8):
        values = [b"%d-%d" % (number, row) + rng.randbytes(50) for row in range(rng.randrange(1, 3000))]
        rows = [pa.record_batch({"key": [v[:5] for v in values], "value": values})]
        codec = rng.choice(list(Codec)).name.lower()
        sink = WriteOptions({**plain, "compression.type": codec, "batch.size": "20000"}, "once")
        turn = Turn("interop", 0, number)
        with Cluster.from_options(plain, timeout_s=TIMEOUT_S) as cluster:
            zombie = Producer(cluster, turn.id)  # dies in the middle, or is taken for dead
            zombie.send({("once", rng.randrange(3)): batch_of(b"zombie")})
            zombie.flush()
            assert send_rows(sink, rows, turn) == Sent(len(values))
            with pytest.raises(ProducerFencedError):
                zombie.commit()
        assert send_rows(sink, rows, turn) == Sent(len(values), skipped=True)
        written += values
    isolation = {"kafka.isolation.level": "read_committed", "targetBytesPerPartition": "50000"}
    source = read_options({**options, "subscribe": "once", **isolation})
    splits = plan.plan_splits(source, plan.starting_offsets(source), plan.latest_offsets(source))
    assert len(splits) > 3
    found = [
        value
        for split in splits
        for batch in plan.read_split(source, split)
        for value in batch.column("value").to_pylist()
    ]
    assert sorted(found) == sorted(written)


def test_a_kafka_of_long_ago_is_understood(tmp_path: Path) -> None:
    with KafkaBroker("2.8.2", tmp_path / "old") as old:
        _create(AdminClient({"bootstrap.servers": old.servers}), "t", 2)
        sink = WriteOptions({"bootstrap.servers": old.servers}, "t")
        for number in range(2):
            for is_again in (False, True):
                rows = [pa.record_batch({"key": ["a", "b", "c"], "value": ["1", "2", str(number)]})]
                assert send_rows(sink, rows, Turn("q", 0, number)) == Sent(3, is_again)
        source = read_options({"kafka.bootstrap.servers": old.servers, "subscribe": "t"})
        start, end = plan.starting_offsets(source), plan.latest_offsets(source)
        splits = plan.plan_splits(source, start, end)
        rows_read = sum(batch.num_rows for split in splits for batch in plan.read_split(source, split))
        assert rows_read == 6
        with Cluster(old.servers) as cluster:
            groups.commit_offsets(cluster, "g", {("t", 0): 2})
            assert groups.fetch_offsets(cluster, "g") == {("t", 0): groups.Committed(2)}
