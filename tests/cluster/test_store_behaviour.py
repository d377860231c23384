"""What every metadata store must do, whichever engine is behind it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cluster.config_changes import (
    Alteration,
    AlterOp,
    BrokerAlterations,
    TopicAlterations,
    alter_configs,
)
from ottla.cluster.controller import (
    DoomedTopic,
    MorePartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
    unregister_broker,
)
from ottla.cluster.image import ClusterImage
from ottla.cluster.outcome import Command, Outcome
from ottla.cluster.sqlite import SqliteStore
from ottla.cluster.store import MetadataStore
from tests.cluster.making import CONFIG, make, register


class Backend(Protocol):
    """A place for metadata, empty at first."""

    def store(self, cluster_id: str = "first") -> MetadataStore:
        """A store on it, as another process would have one; not open yet."""


class SqliteBackend:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "ottla.db"

    def store(self, cluster_id: str = "first") -> MetadataStore:
        return SqliteStore(str(self._path), cluster_id)


BACKENDS: dict[str, Callable[[Path], Backend]] = {"sqlite": SqliteBackend}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return BACKENDS[request.param](tmp_path)


@contextmanager
def opened(store: MetadataStore) -> Iterator[MetadataStore]:
    store.open()
    try:
        yield store
    finally:
        store.close()


def test_a_new_store_is_an_empty_cluster(backend: Backend) -> None:
    with opened(backend.store("mine")) as store:
        assert store.load() == ClusterImage("mine", revision=0)
        assert store.revision() == 0


def test_a_cluster_keeps_its_id(backend: Backend) -> None:
    with opened(backend.store("mine")):
        pass
    with opened(backend.store("other")) as store:
        assert store.load().cluster_id == "mine"


def test_what_a_command_changed_is_kept_at_the_next_revision(backend: Backend) -> None:
    with opened(backend.store()) as store:
        store.load()
        assert store.update(register(1))[0].revision == 1
        image, outcome = store.update(make("a", NewTopic("b", 3, config={"flush.ms": "1"})))
        assert [result.error_code for result in outcome.results] == [0, 0]
        assert image.revision == store.revision() == 2
        assert list(image.topics) == ["a", "b"]
    with opened(backend.store()) as store:
        assert store.load() == image


def test_a_command_that_changes_nothing_keeps_the_revision(backend: Backend) -> None:
    with opened(backend.store()) as store:
        store.update(register(1))
        before, _ = store.update(make("a"))
        after, outcome = store.update(make("a"))
        assert not outcome.results[0].ok
        assert after is before
        assert store.revision() == 2


def test_a_command_that_fails_leaves_nothing_behind(backend: Backend) -> None:
    def broken(image: ClusterImage) -> Outcome:
        raise ZeroDivisionError

    with opened(backend.store()) as store:
        before, _ = store.update(register(1))
        with pytest.raises(ZeroDivisionError):
            store.update(broken)
        assert store.load() == before
        assert store.update(make("a"))[0].revision == 2


def test_a_command_runs_on_what_others_have_done_since(backend: Backend) -> None:
    with opened(backend.store()) as one, opened(backend.store()) as two:
        one.update(register(1))
        assert two.revision() == 1
        two.update(make("a"))
        _, outcome = one.update(make("a"))
        assert not outcome.results[0].ok
        image, _ = one.update(make("b"))
        assert list(image.topics) == ["a", "b"]
        assert two.load() == image


def test_a_topic_made_anew_under_its_old_name_is_another_one(backend: Backend) -> None:
    def replaced(image: ClusterImage) -> Outcome:
        gone = delete_topics(image, [DoomedTopic("a")], CONFIG).image
        return make(NewTopic("a", 1), seed=2)(gone)

    with opened(backend.store()) as store:
        store.update(register(1))
        old, _ = store.update(make(NewTopic("a", 3, config={"flush.ms": "1"})))
        new, _ = store.update(replaced)
        assert old.topics["a"].topic_id != new.topics["a"].topic_id
        assert store.load() == new


def test_no_producer_id_is_given_out_twice(backend: Backend) -> None:
    with opened(backend.store()) as one, opened(backend.store()) as two:
        first = [one.allocate_producer_ids(), two.allocate_producer_ids(), two.allocate_producer_ids(7)]
    with opened(backend.store()) as store:
        assert [*first, store.allocate_producer_ids()] == [0, 1000, 2000, 2007]


# -- random histories

_NAMES = st.sampled_from(["a", "b", "c.d", "c_d"])
_NODES = st.integers(1, 3)


def _new_topics(seed: int, names: list[str], partitions: int) -> Command:
    topics = [NewTopic(name, partitions, config={"flush.ms": str(partitions)}) for name in names]
    # The revision is part of it: a seed may come twice in a history, a topic's id may not.
    return lambda image: create_topics(
        image, topics, CONFIG, random.Random(f"{seed} {image.revision}").randrange
    )


def _altered(name: str, key: str, value: str, op: AlterOp, node_id: int | None) -> Command:
    topic = TopicAlterations(name, [Alteration(key, value, op)], whole=value == "7")
    brokers = BrokerAlterations(node_id, [Alteration(f"log.{key}", value, op)])
    return lambda image: alter_configs(image, [topic, brokers], CONFIG)


COMMANDS = st.one_of(
    st.builds(
        _new_topics, st.integers(0, 10**9), st.lists(_NAMES, min_size=1, max_size=3), st.integers(-1, 3)
    ),
    st.builds(
        lambda name, n: lambda image: create_partitions(image, [MorePartitions(name, n)]),
        _NAMES,
        st.integers(0, 6),
    ),
    st.builds(lambda name: lambda image: delete_topics(image, [DoomedTopic(name)], CONFIG), _NAMES),
    st.builds(lambda node, clean: register(node, clean=clean), _NODES, st.booleans()),
    st.builds(lambda node: lambda image: unregister_broker(image, node), _NODES),
    st.builds(
        _altered,
        _NAMES,
        st.sampled_from(["retention.ms", "segment.bytes", "cleanup.policy"]),
        st.sampled_from(["7", "2000000", "compact", "x"]),
        st.sampled_from(AlterOp),
        st.sampled_from([None, 1]),
    ),
)


def check_invariants(image: ClusterImage) -> None:
    assert image.topic_names == {topic.topic_id: name for name, topic in image.topics.items()}
    assert all(image.broker_configs.values())
    for name, topic in image.topics.items():
        assert topic.name == name
        assert topic.partitions
        for partition in topic.partitions:
            assert set(partition.isr) <= set(partition.replicas)
            assert partition.leader == -1 or partition.leader in partition.isr
            assert partition.leader == -1 or partition.leader in image.brokers
            assert partition.leader_epoch <= partition.partition_epoch


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=60)
@given(commands=st.lists(COMMANDS, max_size=12))
def test_any_history_keeps_the_image_sound_and_the_store_equal_to_it(
    name: str, commands: list[Command], tmp_path_factory: pytest.TempPathFactory
) -> None:
    backend = BACKENDS[name](tmp_path_factory.mktemp("store"))
    with opened(backend.store()) as store, opened(backend.store()) as other:
        epochs: dict[object, int] = {}
        image, _ = store.update(register(1))
        for turn, command in enumerate(commands):
            before = image
            image, _ = (store, other)[turn % 2].update(command)
            assert image.revision == before.revision + (image != before)
            check_invariants(image)
            for topic in image.topics.values():
                for number, partition in enumerate(topic.partitions):
                    key = (topic.topic_id, number)
                    assert partition.leader_epoch >= epochs.get(key, 0)
                    epochs[key] = partition.leader_epoch
        assert store.load() == other.load() == image
