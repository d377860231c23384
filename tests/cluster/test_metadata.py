"""The image on the loop: when a change is there, who hears of it, and what other brokers' changes do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ottla.cluster.config_changes import Alteration, BrokerAlterations, TopicAlterations, alter_configs
from ottla.cluster.controller import NewTopic
from ottla.cluster.image import ClusterImage
from ottla.cluster.metadata import Metadata
from ottla.cluster.outcome import Command, Outcome
from ottla.cluster.sqlite import SqliteStore
from ottla.config import BrokerConfig
from ottla.errors import StorageError
from ottla.testing.runtime import SimulatedRuntime
from tests.cluster.making import make, register

STATIC = {"log.retention.hours": "2", "num.partitions": "2"}


class World:
    """A broker's metadata; work on its thread is done when `run` is called."""

    def __init__(self, path: Path, node_id: int = 1, static: dict[str, str] | None = None) -> None:
        self.runtime = SimulatedRuntime(queued=True)
        config = BrokerConfig.from_properties(
            {**(STATIC if static is None else static), "node.id": str(node_id)}
        )
        self.metadata = Metadata(
            SqliteStore(str(path / "ottla.db"), "cluster"), self.runtime, node_id, config
        )
        self.told: list[object] = []
        self.metadata.open(self.told.append)

    def run(self) -> None:
        self.runtime.run_pending()

    def change(self, *commands: Command) -> list[tuple[Outcome | None, BaseException | None]]:
        done: list[tuple[Outcome | None, BaseException | None]] = []
        for command in commands:
            self.metadata.change(command, lambda outcome, error: done.append((outcome, error)))
        self.run()
        return done

    def close(self) -> None:
        self.metadata.close(lambda: None)
        self.run()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes brokers that share one store."""
    with ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(closing(World(tmp_path, *args, **kwargs)))


@pytest.fixture
def world(broker: Callable[..., World]) -> World:
    world = broker()
    world.run()
    assert world.told == [None]
    world.change(register(1))
    return world


def test_a_change_is_in_the_image_before_the_one_who_asked_is_told(world: World) -> None:
    seen: list[list[str]] = []
    world.metadata.change(make("a"), lambda outcome, error: seen.append(list(world.metadata.image.topics)))
    assert (seen, list(world.metadata.image.topics)) == ([], [])
    world.run()
    assert seen == [["a"]]


def test_the_one_who_asked_is_told_after_every_subscriber_is_ready(world: World) -> None:
    heard: list[tuple[int, int]] = []
    waiting: list[Callable[[], None]] = []
    for _ in range(2):

        def subscriber(old: ClusterImage, new: ClusterImage, ready: Callable[[], None]) -> None:
            heard.append((len(old.topics), len(new.topics)))
            waiting.append(ready)

        world.metadata.subscribe(subscriber)
    world.metadata.subscribe(lambda old, new, ready: ready())
    done = world.change(make("a"))
    assert heard == [(0, 1), (0, 1)]
    waiting[0]()
    assert done == []
    waiting[1]()
    assert [outcome.results[0].ok for outcome, _ in done if outcome] == [True]


def test_a_change_is_applied_while_the_one_before_is_still_carried_out(world: World) -> None:
    waiting: list[Callable[[], None]] = []
    world.metadata.subscribe(lambda old, new, ready: waiting.append(ready))
    done = world.change(make("a"), make("b"))
    assert list(world.metadata.image.topics) == ["a", "b"]
    waiting[1]()
    assert [o.results[0].name for o, _ in done if o] == ["b"]
    waiting[0]()
    assert [o.results[0].name for o, _ in done if o] == ["b", "a"]


def test_what_changes_nothing_is_not_announced_and_nobody_hears_of_it(world: World) -> None:
    world.change(make("a"))
    heard, announced = [], []
    world.metadata.subscribe(lambda old, new, ready: heard.append(new))
    world.metadata.announce = lambda: announced.append(world.metadata.image.revision)
    [(outcome, error)] = world.change(make("a"))
    assert outcome is not None
    assert (outcome.results[0].ok, error, heard, announced) == (False, None, [], [])
    world.metadata.subscribe(lambda old, new, ready: ready())
    world.change(make("b"))
    assert announced == [world.metadata.image.revision] == [3]


def test_a_failed_change_is_told_and_changes_nothing(world: World) -> None:
    def broken(image: ClusterImage) -> Outcome:
        raise StorageError("no")

    [(outcome, error)] = world.change(broken)
    assert outcome is None
    assert isinstance(error, StorageError)
    assert world.metadata.image.revision == 1
    assert world.change(make("a"))[0][1] is None


def test_a_store_that_cannot_be_opened_is_told(tmp_path: Path, broker: Callable[..., World]) -> None:
    (tmp_path / "ottla.db").write_bytes(b"nonsense" * 1000)
    world = broker()
    world.run()
    assert isinstance(world.told[0], StorageError)


def test_changes_of_other_brokers_come_with_a_refresh(world: World, broker: Callable[..., World]) -> None:
    other = broker(node_id=2)
    other.run()
    other.change(register(2), make("a"))
    heard: list[int] = []

    def hear(old: ClusterImage, new: ClusterImage, ready: Callable[[], None]) -> None:
        heard.append(new.revision)
        ready()

    world.metadata.subscribe(hear)
    refreshed: list[object] = []
    world.metadata.refresh(refreshed.append)
    world.metadata.refresh()
    world.run()
    assert refreshed == [None]
    assert world.metadata.image == other.metadata.image
    assert heard == [3]


def test_a_command_runs_on_changes_that_were_not_heard_of_yet(
    world: World, broker: Callable[..., World]
) -> None:
    other = broker(node_id=2)
    other.run()
    other.change(make("a"))
    [(outcome, _)] = world.change(make("a"))
    assert outcome is not None
    assert not outcome.results[0].ok
    assert list(world.metadata.image.topics) == ["a"]


def test_a_poll_finds_what_no_nudge_told(world: World, broker: Callable[..., World]) -> None:
    world.metadata.start_polling(1000)
    other = broker(node_id=2)
    other.run()
    for name in ("a", "b"):
        other.change(make(name))
        world.runtime.advance(1000)
        world.run()
        assert name in world.metadata.image.topics
    closed: list[bool] = []
    world.metadata.close(lambda: closed.append(True))
    world.run()
    assert closed == [True]
    assert world.runtime.timers == 0


def test_producer_ids_come_in_blocks_and_never_twice(world: World, broker: Callable[..., World]) -> None:
    ids: list[int | None] = []
    for _ in range(3):
        world.metadata.next_producer_id(lambda found, error: ids.append(found))
    assert ids == []
    world.run()
    assert ids == [0, 1, 2]
    for _ in range(1000):
        world.metadata.next_producer_id(lambda found, error: ids.append(found))
    world.run()
    assert ids == list(range(1003))
    other = broker(node_id=2)
    other.metadata.next_producer_id(lambda found, error: ids.append(found))
    other.run()
    assert ids[-1] == 2000


def test_producer_ids_that_cannot_be_had_are_an_error_for_all_who_wait(world: World) -> None:
    world.metadata.close(lambda: None)
    errors: list[BaseException | None] = []
    for _ in range(2):
        world.metadata.next_producer_id(lambda found, error: errors.append(error))
    world.run()
    assert [type(error) for error in errors] == [StorageError, StorageError]


def altered(world: World, *alterations: TopicAlterations | BrokerAlterations) -> Command:
    return lambda image: alter_configs(image, alterations, world.metadata.config)


def test_a_topics_settings_follow_the_topic_the_brokers_and_the_file(world: World) -> None:
    metadata = world.metadata
    world.change(make(NewTopic("a", config={"segment.ms": "5"}), "b"))
    assert [metadata.topic_config(topic).retention_ms for topic in ("a", "b", "none")] == [7_200_000] * 3
    assert metadata.topic_config("a").segment_ms == 5
    assert metadata.topic_config("a") is metadata.topic_config("a")
    everywhere = BrokerAlterations(
        None, [Alteration("log.retention.ms", "9"), Alteration("max.connections", "3")]
    )
    here = BrokerAlterations(1, [Alteration("max.connections", "4")])
    own = TopicAlterations("b", [Alteration("retention.ms", "8")])
    world.change(altered(world, everywhere, here, own))
    assert [metadata.topic_config(topic).retention_ms for topic in ("a", "b", "none")] == [9, 8, 9]
    assert metadata.broker_config.max_connections == 4
    assert metadata.broker_config.num_partitions == 2
    assert metadata.broker_properties()["log.retention.hours"] == "2"
    assert metadata.config.max_connections == BrokerConfig().max_connections


def test_a_change_that_does_not_go_with_this_brokers_file_leaves_it_as_it_was(
    world: World, broker: Callable[..., World]
) -> None:
    small = {"log.cleaner.dedupe.buffer.size": str(3 << 20), "log.cleaner.max.compaction.lag.ms": "5"}
    other = broker(node_id=2, static=small)
    world.change(altered(world, BrokerAlterations(None, [Alteration("log.cleaner.threads", "4")])))
    world.change(make(NewTopic("a", config={"min.compaction.lag.ms": "6", "retention.ms": "-1"})))
    assert world.metadata.broker_config.log_cleaner_threads == 4
    other.run()
    assert other.told == [None]
    assert other.metadata.broker_config.log_cleaner_threads == 1
    # The topic's own word counts, above all where it keeps records.
    assert other.metadata.topic_config("a").retention_ms == -1
    assert other.metadata.topic_config("a").min_compaction_lag_ms == 6
