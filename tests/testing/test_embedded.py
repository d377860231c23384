"""The broker that tests run in their own process: its life, its clock, and how it dies."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from ottla.errors import BrokerError, ConfigError
from ottla.testing.embedded import EmbeddedBroker
from ottla.testing.mortal_files import KilledError, MortalFileSystem
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records, wait_until

TOPIC = "t"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def write(broker: EmbeddedBroker, *values: bytes, acks: int = 1, timestamp: int | None = None) -> int:
    """Each value as a batch; the offset of the last."""
    offset = -1
    with Wire(broker) as wire:
        for value in values:
            data = records(value, timestamp=broker.clock.now_ms() if timestamp is None else timestamp)
            made = wire.ask(PRODUCE, 9, produce(TOPIC, data, acks=acks)).responses[0].partition_responses[0]
            assert made.error_code == 0
            offset = made.base_offset
    return offset


def bounds(broker: EmbeddedBroker) -> tuple[int, int]:
    def read() -> tuple[int, int]:
        (log,) = broker.broker.logs.logs.values()
        return log.start_offset, log.high_watermark

    return broker.call(read)


def test_it_starts_within_100_ms() -> None:
    with EmbeddedBroker():
        """What is imported and compiled at the first start is there now."""
    best = min(started_in_s() for _ in range(5))
    assert best < 0.1


def started_in_s() -> float:
    """Of the processor's time: what the machine does besides is not its affair."""
    began = time.process_time()
    with EmbeddedBroker():
        return time.process_time() - began


def test_temporary_data_goes_with_it() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC)
        assert os.path.isdir(broker.data)
    assert not os.path.exists(broker.data)
    assert not broker.is_running


def test_data_that_was_given_stays_and_is_gone_on_with(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path / "data") as broker:
        broker.create_topic(TOPIC)
        write(broker, b"kept")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with EmbeddedBroker(data=tmp_path / "data") as broker:
        assert broker.topics() == [TOPIC]
        assert bounds(broker) == (0, 1)


def test_a_restart_keeps_the_address_and_the_records() -> None:
    with EmbeddedBroker() as broker:
        address = broker.bootstrap
        broker.create_topic(TOPIC)
        write(broker, b"kept")
        broker.restart()
        assert broker.bootstrap == address
        assert write(broker, b"next") == 1


def test_while_it_is_down_nobody_answers_and_nobody_else_can_have_its_port() -> None:
    with EmbeddedBroker() as broker:
        broker.stop()
        with pytest.raises(ConnectionRefusedError):
            Wire(broker)
        others = [EmbeddedBroker() for _ in range(20)]
        assert broker.port not in {other.port for other in others}
        for other in others:
            other.close()
        broker.start()
        with Wire(broker) as wire:
            wire.ping()


def test_a_killed_broker_leaves_no_marker_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path / "data") as broker:
        broker.create_topic(TOPIC)
        last = write(broker, *(b"%d" % number for number in range(20)))
        wire = Wire(broker)
        wire.ping()
        broker.kill()
        assert wire.is_closed()
        wire.socket.close()
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        broker.start()
        assert not broker.broker.logs.was_clean
        assert bounds(broker) == (0, last + 1)
        assert write(broker, b"next") == last + 1


def test_a_kill_under_load_loses_nothing_that_was_acknowledged() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC)
        acknowledged = -1
        for _ in range(5):
            with Wire(broker) as wire:
                for _ in range(100):
                    wire.send(PRODUCE, 9, produce(TOPIC, records(b"x")))
                for _ in range(20):
                    made = wire.receive(PRODUCE, 9)[1].responses[0].partition_responses[0]
                    assert made.base_offset > acknowledged
                    acknowledged = made.base_offset
                broker.kill()
            broker.start()
            first, end = bounds(broker)
            assert first == 0
            assert end > acknowledged
            acknowledged = end - 1  # what was written and not answered may be there


def test_nothing_is_written_after_a_kill(tmp_path: Path) -> None:
    fs = MortalFileSystem()
    path = str(tmp_path / "file")
    file = fs.open(path, create=True)
    file.pwrite(b"alive", 0)
    fs.die()
    changes = [
        lambda: file.pwrite(b"ghost", 0),
        lambda: file.truncate(0),
        lambda: file.allocate(100),
        file.sync,
        lambda: fs.open(path, write=True),
        lambda: fs.rename(path, path + ".new"),
        lambda: fs.unlink(path),
        lambda: fs.make_dir(path + ".dir"),
        lambda: fs.remove_dir(str(tmp_path)),
    ]
    for change in changes:
        with pytest.raises(KilledError):
            change()
    file.close()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"file": b"alive"}
    assert not issubclass(KilledError, Exception), "nothing in the broker handles it"


def test_settings_may_be_numbers_and_truths() -> None:
    with EmbeddedBroker({"num.partitions": 3, "auto.create.topics.enable": False}) as broker:
        assert broker.broker.settings.config.num_partitions == 3
        assert not broker.broker.settings.config.auto_create_topics_enable


def test_a_setting_that_is_wrong_is_told_and_nothing_is_left_running() -> None:
    broker = EmbeddedBroker({"num.partitions": "many"})
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        broker.start()
    assert not broker.is_running
    broker.close()


def test_what_cannot_be_made_is_an_error_with_kafkas_code() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC)
        with pytest.raises(BrokerError, match="exists") as info:
            broker.create_topic(TOPIC)
        assert info.value.code == 36
        broker.delete_topic(TOPIC)
        assert broker.topics() == []


def test_two_brokers_in_one_process_know_nothing_of_each_other() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        one.create_topic(TOPIC)
        assert other.topics() == []
        assert one.bootstrap != other.bootstrap


# -- the clock


def test_retention_by_time_is_seen_without_waiting() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC, config={"retention.ms": DAY_MS, "segment.ms": HOUR_MS})
        write(broker, b"old")
        broker.clock.advance(2 * HOUR_MS)
        write(broker, b"newer")  # begins another segment
        broker.clock.advance(23 * HOUR_MS)
        wait_until(lambda: bounds(broker) == (1, 2))
        broker.clock.advance(DAY_MS)
        wait_until(lambda: bounds(broker) == (2, 2))


def test_log_append_time_is_the_brokers_clock() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC, config={"message.timestamp.type": "LogAppendTime"})
        broker.clock.set(1_500_000_000_000)
        with Wire(broker) as wire:
            made = wire.ask(PRODUCE, 9, produce(TOPIC, records(b"x")))
        stamped = made.responses[0].partition_responses[0].log_append_time_ms
        assert 0 <= stamped - 1_500_000_000_000 < 60_000


def test_a_wait_ends_when_the_clock_is_moved() -> None:
    with EmbeddedBroker() as broker, Wire(broker) as wire:
        broker.create_topic(TOPIC)
        wire.send(FETCH, 12, fetch(TOPIC, max_wait_ms=HOUR_MS))
        wait_until(lambda: broker.call(lambda: broker.broker.replicas.purgatories.fetch.delayed) == 1)
        broker.clock.advance(HOUR_MS)
        _, found = wire.receive(FETCH, 12)
        assert found.responses[0].partitions[0].high_watermark == 0


def test_time_goes_on_after_it_was_moved_and_survives_a_restart() -> None:
    with EmbeddedBroker() as broker:
        broker.clock.advance(DAY_MS)
        broker.restart()
        now_ms = broker.call(broker.broker.runtime.now_ms)
        assert abs(now_ms - time.time() * 1000 - DAY_MS) < 60_000
        with pytest.raises(ValueError, match="pass"):
            broker.clock.advance(-1)


def test_a_broker_that_cannot_start_leaves_nothing_behind() -> None:
    """Not even its port and its directory: a ResourceWarning would fail the test."""
    broker = EmbeddedBroker({"ssl.keystore.location": "/x"})
    with pytest.raises(ConfigError, match="would have no effect"), broker:
        pass
    assert not os.path.exists(broker.data)


def test_settings_of_the_cleaner_can_change_while_it_runs_and_hold_after_a_restart() -> None:
    with EmbeddedBroker({"log.cleaner.threads": 0}) as broker:
        assert not broker.broker.logs.cleaner.may_start
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        entry = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(60)
        assert broker.broker.logs.cleaner.may_start
        broker.restart()
        assert broker.broker.logs.cleaner.may_start
