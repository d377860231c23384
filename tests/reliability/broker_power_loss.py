"""Power loss under the broker: whatever a topic with flush.messages=1 acknowledged, or showed, is on disk after a cut.

Disks that a cut may leave at every point of a story are given to a new broker. It leads all partitions; each holds a
prefix of what was appended, at least as much as was promised; and producers that send again what was not acknowledged
get all of it in, once and in order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from random import Random

from ottla.cluster.image import ClusterImage
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.testing.crash import CrashState, crash_states
from ottla.testing.runtime import SimulatedRuntime
from tests.reliability.broker_story import (
    DURABLE_KEYS,
    KEYS,
    BrokerStory,
    Promise,
    StoryBroker,
    read_all,
)
from tests.reliability.ledger import Entry, Sender, check, summary
from tests.reliability.scenarios import Case

ACTIONS = 120  # of a story
SAMPLES = 4  # random states at each point, besides the corners;
STATES_PER_POINT = 6  # of all of them, this many are opened

Held = dict[TopicPartition, list[Entry]]


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """The states at every point of one story, or at a `share` of its points."""
    return cases_of(_story(seed), seed, share)


def cases_of(story: BrokerStory, seed: int, share: float) -> Iterator[Case]:
    rng = Random(f"points {seed}")
    points = [point for point in range(len(story.history.operations) + 1) if rng.random() < share]
    return _cases(story, seed, points, STATES_PER_POINT)


def states_at(seed: int, name: str) -> Iterator[Case]:
    """All states at the point of the one of that name."""
    return _cases(_story(seed), seed, [int(name.split(".")[0])], sys.maxsize)


def _story(seed: int) -> BrokerStory:
    story = BrokerStory(seed)
    story.run(ACTIONS)
    assert story.told > ACTIONS // 10
    assert story.shown > 0
    return story


def _cases(story: BrokerStory, seed: int, points: list[int], states_per_point: int) -> Iterator[Case]:
    appended = story.everything()
    states = crash_states(story.history, seed=seed, samples=SAMPLES, points=points)
    for point, group in groupby(states, key=attrgetter("point")):
        found = list(group)
        if len(found) > states_per_point:
            found = Random(f"{seed} {point}").sample(found, states_per_point)
        for state in found:
            yield Case("cut", state.name, partial(_check, story, appended, state))


def _check(story: BrokerStory, appended: Held, state: CrashState) -> None:
    number = state.label or 0
    assert isinstance(number, int)
    promise = story.promises[number]
    runtime = SimulatedRuntime(state.point, story.runtime.now_ms())
    broker = StoryBroker(state.disk(runtime.now_ms), runtime, _next_image(story), story.broker.configs)
    try:
        for key in KEYS:
            _check_held(broker, key, appended[key], promise)
        _produce_on(story, broker, promise)
        for key in DURABLE_KEYS:
            _check_after(broker, key, promise)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{state.describe()}") from error
    finally:
        broker.logs.abandon()


def _next_image(story: BrokerStory) -> ClusterImage:
    """The same topics, led by the same broker in a new epoch, as after every unclean stop."""
    image = story.broker.image
    topics = {
        name: replace(topic, partitions=tuple(replace(info, leader_epoch=1) for info in topic.partitions))
        for name, topic in image.topics.items()
    }
    return replace(image, topics=topics)


def _check_held(broker: StoryBroker, key: TopicPartition, appended: list[Entry], promise: Promise) -> None:
    """What is there is what was appended, up to some offset that is no lower than what was promised."""
    log = broker.log(key)
    assert log.high_watermark == log.end_offset, f"{key}: {log.high_watermark} of {log.end_offset}"
    assert log.end_offset >= promise.ends[key], (
        f"{key}: {promise.ends[key]} was promised, the log ends at {log.end_offset}"
    )
    assert all(loss.first_offset >= promise.ends[key] for loss in log.losses), f"{key}: {log.losses}"
    assert log.start_offset <= promise.deleted[key], f"{key} starts at {log.start_offset}"
    held = read_all(broker, key)
    first = appended[0].offset if appended else log.end_offset
    there = [entry for entry in held if entry.offset >= first]
    end = max(first, log.end_offset)
    expected = [entry for entry in appended if log.start_offset <= entry.offset < end]
    assert there == expected, f"{key} holds {there}, not {expected}"


def _produce_on(story: BrokerStory, broker: StoryBroker, promise: Promise) -> None:
    """Each producer sends again what was not acknowledged; each batch is taken, as new or as known."""
    for name, (sent, answered) in promise.produced.items():
        producing = story.producing[name]
        if producing.key not in DURABLE_KEYS:
            continue  # what it counts on may be lost
        for batch in producing.batches[answered:sent]:
            told = broker.append(producing.key, records=batch.data)
            code = told.only.error_code
            assert code == 0, f"{name} sent {batch.first_number} again: {ErrorCode(code).name}"


def _check_after(broker: StoryBroker, key: TopicPartition, promise: Promise) -> None:
    """Everything that was sent is there, once and in order, but for what was deleted."""
    log = broker.log(key)
    read = read_all(broker, key)
    there = {(entry.sender, entry.number) for entry in read}
    findings = check(
        {
            name: _without_deleted(sender, promise.deleted[key])
            for name, sender in promise.senders[key].items()
        },
        read,
        start_offset=log.start_offset,
    )
    findings = [finding for finding in findings if finding.kind != "skipped" or not log.start_offset]
    assert not findings, f"{key}: {summary(findings)}"
    if not promise.deleted[key]:
        expected = sum(sender.sent for sender in promise.senders[key].values())
        assert len(there) == expected, f"{key}: {len(there)} of {expected} records"


def _without_deleted(sender: Sender, deleted: int) -> Sender:
    kept = {number: offset for number, offset in sender.acked.items() if offset is None or offset >= deleted}
    return Sender(sender.is_idempotent, sender.sent, kept)
