"""The coordinators' runtime: what is answered is in the log, and what is in the log is the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ottla.cluster import controller
from ottla.coordinator.loading import LoadedBatch, read_window
from ottla.coordinator.result import LATER, CommandResult, Producer
from ottla.coordinator.runtime import Coordinator, InternalTopic, string_hash
from ottla.errors import (
    BrokerError,
    CoordinatorLoadInProgressError,
    InvalidRequestError,
    NotCoordinatorError,
    RecordTooLargeError,
)
from ottla.names import TopicPartition
from ottla.records.control import Marker
from ottla.records.kernel import encode_records
from tests.api.world import World

TOPIC = InternalTopic("__test_state", 4, 1, {"cleanup.policy": "compact"}, 5000)
Pair = tuple[str, str | None]


class RecordCodec:
    def write(self, batch: bytearray, records: Sequence[Pair], time_delta: int, first_delta: int) -> int:
        for delta, (key, value) in enumerate(records, first_delta):
            encoded = (time_delta, key.encode(), None if value is None else value.encode(), ())
            encode_records(batch, [encoded], 0, [delta])
        return len(records)

    def decode(self, key: bytes | None, value: bytes | None) -> Pair | None:
        return None if key is None else (key.decode(), None if value is None else value.decode())


class Values:
    """A dictionary that lives in a partition."""

    def __init__(self, shard: Any) -> None:
        self.shard = shard
        self.values: dict[str, str] = {}
        self.pending: dict[int, list[Pair]] = {}
        self.ended: BrokerError | None = None
        self.is_loaded = False

    def replay(self, records: Sequence[Pair], first_offset: int, producer_id: int) -> None:
        if producer_id >= 0:
            self.pending.setdefault(producer_id, []).extend(records)
            return
        for key, value in records:
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value

    def replay_end_of_txn(self, producer_id: int, committed: bool, offset: int) -> None:
        records = self.pending.pop(producer_id, [])
        if committed:
            self.replay(records, offset, -1)

    def loaded(self, now_ms: int) -> None:
        self.is_loaded = True

    def unloaded(self, error: BrokerError) -> None:
        self.ended = error


class Coordinated(World):
    """A broker with a coordinator of such dictionaries."""

    turns = True  # whether the loop goes on after each command

    def start(self) -> None:
        super().start()
        self.coordinator: Coordinator[Values, Pair] = Coordinator(
            TOPIC, Values, RecordCodec(), self.metadata, self.replicas, self.runtime
        )
        self.metadata.subscribe(self.coordinator.apply_image)
        self.coordinator.follow()

    def make(self) -> None:
        self.coordinator.when_made(lambda: None)
        self.runtime.run_pending()

    def run(self, key: str, command: Any) -> list[Any]:
        """What was answered so far: responses, or errors."""
        answers: list[Any] = []
        self.coordinator.run(key, command, lambda response, error: answers.append(error or response))
        if self.turns:
            self.runtime.run_pending()
        return answers

    def put(self, key: str, value: str | None, **more: Any) -> list[Any]:
        return self.run(key, lambda state, now_ms: CommandResult("put", [(key, value)], **more))

    def get(self, key: str) -> list[Any]:
        return self.run(key, lambda state, now_ms: CommandResult(state.values.get(key)))

    def values(self) -> dict[str, str]:
        return {key: value for state in self.coordinator.states() for key, value in state.values.items()}


@pytest.fixture
def world(data: str) -> Iterator[Coordinated]:
    world = Coordinated(f"{data}/0")
    world.make()
    yield world
    world.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello", 99162322), ("polygenelubricants", 0), ("\U0001f600", (0xD83D * 31 + 0xDE00) % 2**31)],
)
def test_keys_are_spread_by_javas_hash_without_its_sign(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_the_topic_is_made_on_first_use_with_its_settings(data: str) -> None:
    world = Coordinated(f"{data}/0")
    assert TOPIC.name not in world.image.topics
    found: list[Any] = []
    world.coordinator.find("k", found.append)
    world.runtime.run_pending()
    assert [broker.node_id for broker in found] == [1]
    assert len(world.image.topics[TOPIC.name].partitions) == 4
    assert dict(world.image.topics[TOPIC.name].config) == {"cleanup.policy": "compact"}
    world.close()


def test_a_command_is_refused_where_nobody_looks_after_its_key(data: str) -> None:
    world = Coordinated(f"{data}/0")
    assert isinstance(world.get("k")[0], NotCoordinatorError)
    world.close()


def test_what_is_answered_is_there_after_a_restart(world: Coordinated) -> None:
    for number in range(20):
        assert world.put(f"k{number}", f"v{number}") == ["put"]
    assert world.put("k3", None) == ["put"]
    before = world.values()
    assert len(before) == 19
    world.restart()
    assert world.values() == before
    assert all(state.is_loaded for state in world.coordinator.states())


def test_a_command_sees_what_was_written_before_it_is_safe_but_is_answered_after(data: str) -> None:
    world = Coordinated(f"{data}/0", queued=True, log_flush_interval_messages="1")
    world.make()
    world.turns = False
    put, got = world.put("k", "v"), world.get("k")
    failed = world.run("k", _refuse)
    assert (put, got, failed) == ([], [], [])
    world.runtime.run_pending()
    assert (put, got) == (["put"], ["v"])
    assert isinstance(failed[0], InvalidRequestError)
    world.close()


def test_what_is_written_in_one_turn_is_one_batch_in_its_order(world: Coordinated) -> None:
    world.turns = False
    answers = [world.put("k", str(number)) for number in range(20)]
    assert not any(answers)
    in_txn = world.put("k", "in a transaction", producer=Producer(7, 0))
    answers += (world.put("k", str(number)) for number in range(20, 40))
    large = world.put("k", "x" * 200_000)
    world.runtime.run_pending()
    assert answers == [["put"]] * 40
    assert (in_txn, large) == (["put"], ["put"])
    batches = _batches(world)
    assert [len(batch.records) for batch in batches] == [20, 1, 20, 1]
    written = [value for batch in batches for _, (_, value) in batch.records]
    assert written == [*map(str, range(20)), "in a transaction", *map(str, range(20, 40)), "x" * 200_000]


def _batches(world: Coordinated) -> list[LoadedBatch[Pair]]:
    """What is in the partition of key k."""
    partition = world.replicas.partition(TopicPartition(TOPIC.name, world.coordinator.partition_of("k")))
    assert partition is not None
    assert partition.log is not None
    window = read_window(partition.log, 0, RecordCodec())
    assert window is not None
    return window.batches


def test_what_was_not_appended_in_its_turn_is_told_when_the_partition_goes(world: Coordinated) -> None:
    world.turns = False
    answers = world.put("k", "v")
    for state in world.coordinator.states():
        state.shard.unload(NotCoordinatorError("gone"))
    world.runtime.run_pending()
    assert [type(answer) for answer in answers] == [NotCoordinatorError]


def _refuse(state: Values, now_ms: int) -> CommandResult[Pair]:
    raise InvalidRequestError("no")


def test_a_command_can_answer_somebody_who_came_earlier(world: Coordinated) -> None:
    waiting: list[Any] = []

    def wait(state: Values, now_ms: int) -> CommandResult[Pair]:
        return CommandResult(LATER)

    def wake(state: Values, now_ms: int) -> CommandResult[Pair]:
        def earlier(response: Any, error: BrokerError | None) -> None:
            waiting.append(response)

        return CommandResult("woken", [("k", "v")], replies=[(earlier, "good morning")])

    assert world.run("k", wait) == []
    assert world.run("k", wake) == ["woken"]
    assert waiting == ["good morning"]


def test_nothing_is_answered_while_the_partition_is_read(data: str) -> None:
    world = Coordinated(f"{data}/0", queued=True)
    world.make()
    world.put("k", "v")
    world.runtime.run_pending()
    world.coordinator._shards.clear()
    world.coordinator.follow()
    assert isinstance(world.get("k")[0], CoordinatorLoadInProgressError)
    world.runtime.run_pending()
    assert world.get("k") == ["v"]
    world.close()


def test_a_partition_led_elsewhere_is_let_go(world: Coordinated) -> None:
    world.put("k", "v")
    (state,) = [state for state in world.coordinator.states() if state.values]
    world.change(lambda image: controller.unregister_broker(image, 1))
    assert isinstance(state.ended, NotCoordinatorError)
    assert isinstance(world.get("k")[0], NotCoordinatorError)
    world.register(1)
    assert world.get("k") == ["v"]


def test_an_append_that_fails_is_told_and_the_state_read_again(world: Coordinated) -> None:
    world.put("k", "old")
    number = world.coordinator.partition_of("k")
    shard = world.coordinator._shards[number]
    partition = world.replicas.partition(shard.key)
    assert partition is not None
    partition.is_leader = False  # as if the image were a little ahead
    assert isinstance(world.put("k", "new")[0], NotCoordinatorError)
    partition.is_leader = True
    assert world.get("k") == ["old"]


def test_records_that_are_too_large_change_nothing(world: Coordinated) -> None:
    undone: list[bool] = []
    assert isinstance(
        world.put("k", "x" * 2_000_000, undo=lambda: undone.append(True))[0], RecordTooLargeError
    )
    assert undone == [True]
    assert world.get("k") == [None]
    assert world.put("k", "v") == ["put"]


def test_what_cannot_be_written_does_not_disturb_what_others_write_in_the_same_turn(
    world: Coordinated,
) -> None:
    world.turns = False
    before = world.put("k", "before")
    too_large = world.put("k", "x" * 2_000_000)
    with pytest.raises(UnicodeEncodeError):
        world.run("k", lambda state, now_ms: CommandResult("put", [("k", "half of it"), ("k", "\ud800")]))
    after = world.put("k", "after")
    world.turns = True
    assert world.get("k") == ["after"]
    assert (before, [type(answer) for answer in too_large], after) == (
        ["put"],
        [RecordTooLargeError],
        ["put"],
    )
    (found,) = _batches(world)
    assert [value for _, (_, value) in found.records] == ["before", "after"]


def test_a_command_that_breaks_is_answered_and_the_state_read_again(world: Coordinated) -> None:
    world.put("k", "v")

    def broken(state: Values, now_ms: int) -> CommandResult[Pair]:
        state.values["k"] = "half done"
        raise ZeroDivisionError

    (error,) = world.run("k", broken)
    assert error.code == -1
    assert world.get("k") == ["v"]


def test_a_timer_is_a_command_and_dies_with_its_state(world: Coordinated) -> None:
    world.put("k", "v")
    (state,) = [state for state in world.coordinator.states() if state.values]
    state.shard.call_later(100, lambda state, now_ms: CommandResult(None, [("k", "later")]))
    world.runtime.advance(99)
    assert world.get("k") == ["v"]
    world.runtime.advance(1)
    assert world.get("k") == ["later"]
    state.shard.call_later(100, lambda state, now_ms: CommandResult(None, [("k", "too late")]))
    world.change(lambda image: controller.unregister_broker(image, 1))
    world.register(1)
    world.runtime.advance(100)
    assert world.get("k") == ["later"]


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("restart", [True, False])
def test_a_transaction_counts_when_it_is_committed(
    world: Coordinated, committed: bool, restart: bool
) -> None:
    producer = Producer(7, 0)
    assert world.put("k", "old") == ["put"]
    assert world.put("k", "new", producer=producer) == ["put"]
    assert world.get("k") == ["old"]
    if restart:
        world.restart()
    told: list[Any] = []
    world.coordinator.end_txn(
        world.coordinator.partition_of("k"),
        producer,
        Marker(not committed, 0),
        lambda *answer: told.append(answer),
    )
    world.runtime.run_pending()
    assert told == [(None, None)]
    expected = ["new" if committed else "old"]
    assert world.get("k") == expected
    world.restart()
    assert world.get("k") == expected


def test_a_fenced_producer_is_refused_and_nobody_else_is_disturbed(world: Coordinated) -> None:
    assert world.put("k", "new", producer=Producer(7, 3)) == ["put"]
    (error,) = world.put("k", "newer", producer=Producer(7, 2))
    assert error.code == 47
    assert world.get("k") == [None]
    assert [state.ended for state in world.coordinator.states()] == [None] * 4
