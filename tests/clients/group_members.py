"""Members of a consumer group, one class for each real client. Every call ends within TIMEOUT_S."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import aiokafka
import kafka
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from tests.clients.client import TIMEOUT_S
from tests.clients.loop_thread import LoopThread

SESSION_MS = 20_000
Place = tuple[str, int]


class Commit(NamedTuple):
    """What a member says about a partition."""

    offset: int
    metadata: str
    leader_epoch: int | None  # None where the client does not have it


class Member(Protocol):
    """A consumer of a group that reads from the beginning and commits when it is told."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        instance: str | None = None,
        *,
        cooperative: bool = False,
    ) -> None: ...

    def poll(self) -> list[bytes]:
        """What has come, after a short wait."""

    def assignment(self) -> set[Place]: ...

    def commit(self) -> None: ...

    def commit_at(self, place: Place, commit: Commit) -> None: ...

    def committed(self, place: Place) -> Commit:
        """What is committed, as far as the client can tell."""

    def close(self) -> None:
        """Leave the group, unless the member is static."""


class ConfluentMember:
    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        instance: str | None = None,
        *,
        cooperative: bool = False,
    ) -> None:
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **({} if instance is None else {"group.instance.id": instance}),
            **self.protocol(cooperative=cooperative),
        }
        self.revoked: list[set[Place]] = []
        self._consumer = Consumer(config)
        self._consumer.subscribe([topic], on_revoke=self._on_revoke)

    def protocol(self, *, cooperative: bool) -> dict[str, str | int]:
        return {
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": "cooperative-sticky" if cooperative else "range",
        }

    def _on_revoke(self, _: Consumer, partitions: list[Any]) -> None:
        self.revoked.append({(at.topic, at.partition) for at in partitions})

    def poll(self) -> list[bytes]:
        messages = self._consumer.consume(100, timeout=0.1)
        assert all(message.error() is None for message in messages), [m.error() for m in messages]
        return [message.value() or b"" for message in messages]

    def assignment(self) -> set[Place]:
        return {(at.topic, at.partition) for at in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def commit_at(self, place: Place, commit: Commit) -> None:
        at = TopicPartition(*place, commit.offset, commit.metadata, commit.leader_epoch)
        (done,) = self._consumer.commit(offsets=[at], asynchronous=False)
        assert done.error is None, done.error

    def committed(self, place: Place) -> Commit:
        (found,) = self._consumer.committed([TopicPartition(*place)], timeout=TIMEOUT_S)
        assert found.error is None, found.error
        return Commit(found.offset, found.metadata or "", found.leader_epoch)

    def close(self) -> None:
        self._consumer.close()


class NewerMember(ConfluentMember):
    """librdkafka by the newer protocol, in which times and assignors are the broker's and all are cooperative."""

    def protocol(self, *, cooperative: bool) -> dict[str, str | int]:
        assert not cooperative, "it is a choice of the classic protocol"
        return {"group.protocol": "consumer"}


class KafkaPythonMember:
    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        instance: str | None = None,
        *,
        cooperative: bool = False,
    ) -> None:
        self.revoked: list[set[Place]] = []
        more = {"partition_assignment_strategy": [CooperativeStickyAssignor]} if cooperative else {}
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            **more,
        )
        # A leader that does not know the topic's partitions yet assigns nothing, and is content with that for minutes.
        while not self._consumer.partitions_for_topic(topic):
            self._consumer.poll(timeout_ms=10)
        self._consumer.subscribe([topic], listener=_Listener(self.revoked))

    def poll(self) -> list[bytes]:
        found = self._consumer.poll(timeout_ms=100)
        # A join that changed metadata asked for, and that outlives a poll, is forgotten by 3.0 once the leader has made
        # its assignment: no poll would ever look at the answer, or fetch.
        coordinator = self._consumer._coordinator
        if coordinator.rejoining:
            coordinator.request_rejoin()
        return [record.value for records in found.values() for record in records]

    def assignment(self) -> set[Place]:
        return {(at.topic, at.partition) for at in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def commit_at(self, place: Place, commit: Commit) -> None:
        self._consumer.commit({kafka.TopicPartition(*place): kafka.OffsetAndMetadata(*commit)})

    def committed(self, place: Place) -> Commit:
        found = self._consumer.committed(kafka.TopicPartition(*place), metadata=True)
        return Commit(found.offset, found.metadata or "", found.leader_epoch)

    def close(self) -> None:
        self._consumer.close()


class _Listener(kafka.ConsumerRebalanceListener):
    def __init__(self, revoked: list[set[Place]]) -> None:
        self._revoked = revoked

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._revoked.append({(at.topic, at.partition) for at in revoked})

    def on_partitions_assigned(self, assigned: Any) -> None: ...


class AioMember:
    """aiokafka, on an event loop of its own."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        instance: str | None = None,
        *,
        cooperative: bool = False,
    ) -> None:
        assert not cooperative, "aiokafka does not have it"
        self._loop = LoopThread()
        self._run = self._loop.run
        self._run(self._start(bootstrap, group, topic, instance))

    async def _start(self, bootstrap: str, group: str, topic: str, instance: str | None) -> None:
        self._consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
        )
        await self._consumer.start()

    def poll(self) -> list[bytes]:
        found = self._run(self._consumer.getmany(timeout_ms=100))
        return [record.value for records in found.values() for record in records]

    def assignment(self) -> set[Place]:
        return {(at.topic, at.partition) for at in self._consumer.assignment()}

    def commit(self) -> None:
        self._run(self._consumer.commit())

    def commit_at(self, place: Place, commit: Commit) -> None:
        offsets = {aiokafka.TopicPartition(*place): (commit.offset, commit.metadata)}
        self._run(self._consumer.commit(offsets))

    def committed(self, place: Place) -> Commit:
        offset = self._run(self._consumer.committed(aiokafka.TopicPartition(*place)))
        return Commit(offset, "", None)

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()
