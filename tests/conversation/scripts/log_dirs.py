"""DescribeLogDirs and AlterReplicaLogDirs: where partitions lie, and moving them."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.conversation.say import NEWEST_FETCH_BY_NAME, fetch, produce, records
from tests.conversation.talk import Talk, versions

DESCRIBE = DescribeLogDirsRequest.API_KEY
MOVE = AlterReplicaLogDirsRequest.API_KEY
NAME = "dirs"
NEWEST = 4


def script(talk: Talk) -> None:
    talk.topic(NAME, 2)
    talk.topic("dirs-empty")
    talk.request(12, produce(NAME, records(b"a", b"b")))
    for version in versions(DESCRIBE):
        _described(talk, version)
    for version in versions(MOVE):
        _moved(talk, version)


def _described(talk: Talk, version: int) -> None:
    def ask(step: str, *topics: tuple[str, list[int]]) -> None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=partitions) for name, partitions in topics]
        talk.ask(step, version, DescribeLogDirsRequest(topics=wanted), only=_together)

    talk.ask("all", version, DescribeLogDirsRequest(topics=None), only=_together)
    ask("one", (NAME, [0]))
    ask("two partitions", (NAME, [0, 1]))
    ask("an empty partition", ("dirs-empty", [0]))
    ask("none")
    ask("no partitions", (NAME, []))
    ask("unknown topic", ("nowhere", [0]))
    ask("unknown partition", (NAME, [7, 0]))


def _together(response: Any) -> None:
    """Brokers choose the directory of a partition; what is said of the partition is the same in each."""
    topics: dict[str, Any] = {}
    for result in response.results:
        for topic in result.topics:
            if topic.name.startswith(NAME):
                topics.setdefault(topic.name, topic)
                if topics[topic.name] is not topic:
                    topics[topic.name].partitions += topic.partitions
    for result in response.results:
        result.log_dir = "a directory"
        result.topics.clear()
    response.results.sort(key=lambda result: result.log_dir)
    response.results[0].topics += topics.values()


def _where(talk: Talk, name: str) -> tuple[str, str]:
    """The directory of a topic's partition 0, and another one."""
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=name, partitions=[0])])
    results = talk.request(NEWEST, request).results
    here = next(result.log_dir for result in results if result.topics)
    other = next(result.log_dir for result in results if result.log_dir != here)
    return here, other


def _move(path: str, *topics: tuple[str, list[int]]) -> AlterReplicaLogDirsRequest:
    wanted = [AlterReplicaLogDirTopic(name=name, partitions=partitions) for name, partitions in topics]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=wanted)])


def _moved(talk: Talk, version: int) -> None:
    name = f"dirs-move-{version}"
    talk.topic(name)
    talk.request(12, produce(name, records(b"a", b"b")))
    here, other = _where(talk, name)
    talk.ask("where it is", version, _move(here, (name, [0])))
    talk.ask("to the other", version, _move(other, (name, [0])))
    wanted = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=name, partitions=[0])])
    talk.until(
        NEWEST,
        wanted,
        lambda response: [r.log_dir for r in response.results if r.topics] == [other],
    )
    talk.ask(f"after moving, v{version}", NEWEST, wanted, only=_together)
    talk.ask(f"what was moved, v{version}", NEWEST_FETCH_BY_NAME, fetch(name))
    talk.request(12, produce(name, records(b"c")))
    talk.ask(f"what came after it, v{version}", NEWEST_FETCH_BY_NAME, fetch(name))
    talk.ask("to nowhere", version, _move("/no/such/dir", (name, [0])))
    talk.ask("to a relative path", version, _move("data", (name, [0])))
    talk.ask("to no path", version, _move("", (name, [0])))
    talk.ask("unknown topic", version, _move(here, ("nowhere", [0])))
    talk.ask("unknown partition", version, _move(here, (name, [7])))
    talk.ask("no topics", version, _move(here))
    talk.ask("no partitions", version, _move(here, (name, [])))
    talk.ask("no dirs", version, AlterReplicaLogDirsRequest())
