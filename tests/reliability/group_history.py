"""What members of groups saw, and what must hold of it.

Every request is a line of its member's process, written when the answer is there, so that a kill loses nothing but
what had no answer. All processes have the same clock. An answer means that what it says was so at some moment between
the request and the answer: two answers contradict each other only if one ends before the other begins.

- owner: within a generation a partition is given to one member. A static member that starts again keeps its place
  under a new id, and then its old id is out.
- generation: once a generation has been given out or has committed, nothing of an earlier one is accepted.
- lost: who reads a group's offset sees no less than what was committed before. Owners go on from what they read, so
  that offsets only grow.
- unknown: what is read was committed by somebody.
- behind: a commit that is accepted is larger than those before.
- strange: an answer that no member of these groups should get.

While a broker reads its groups it cannot know who is a member, and tells every heartbeat that all is well, as Kafka
does: such heartbeats prove nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

JOIN, SYNC, BEAT, COMMIT, FETCH, TRYING, STRANGE = (
    "join", "sync", "beat", "commit", "fetch", "trying", "strange",
)  # fmt: skip
NOTHING = -1  # the offset where none is committed


class Event(NamedTuple):
    """One request of a member and its answer. `places` are partitions with their offsets, or 0 in an assignment."""

    group: str
    member: str
    instance: str | None
    kind: str
    generation: int
    sent_ns: int
    received_ns: int
    code: int
    places: tuple[tuple[int, int], ...] = ()

    @property
    def owner(self) -> str:
        """Who has a place in the group, under whatever id."""
        return self.member if self.instance is None else self.instance

    @property
    def is_accepted(self) -> bool:
        return self.code == 0 and self.kind in (SYNC, BEAT, COMMIT)

    def line(self) -> bytes:
        return json.dumps(self, separators=(",", ":")).encode() + b"\n"


class Finding(NamedTuple):
    kind: str
    group: str
    text: str


def read(files: Iterable[Path]) -> Iterator[Event]:
    """The events of all processes; a line that a kill has cut off is left out."""
    for file in files:
        for line in file.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                *fields, places = json.loads(line)
                yield Event._make([*fields, tuple((at, offset) for at, offset in places)])


def check(events: Iterable[Event], loading: Sequence[tuple[int, int]] = ()) -> list[Finding]:
    """All that is wrong. `loading`: from when until when the broker was down, or was reading its groups."""
    findings: list[Finding] = []
    counted = [event for event in events if not _proves_nothing(event, loading)]
    for group, found in groupby(sorted(counted, key=attrgetter("group")), key=attrgetter("group")):
        mine = list(found)
        for kind, texts in (
            ("owner", _owners(mine)),
            ("owner", _incarnations(mine)),
            ("generation", _generations(mine)),
            ("strange", (str(event) for event in mine if event.kind == STRANGE)),
        ):
            findings += (Finding(kind, group, text) for text in texts)
        findings += (Finding(kind, group, text) for kind, text in _offsets(mine))
    return findings


def _proves_nothing(event: Event, loading: Sequence[tuple[int, int]]) -> bool:
    return event.kind == BEAT and any(
        event.sent_ns < end_ns and event.received_ns > begin_ns for begin_ns, end_ns in loading
    )


def _owners(events: list[Event]) -> Iterator[str]:
    given: dict[tuple[int, int], str] = {}
    for event in events:
        if event.kind == SYNC and event.code == 0:
            for partition, _ in event.places:
                before = given.setdefault((event.generation, partition), event.owner)
                if before != event.owner:
                    yield (
                        f"partition {partition} in generation {event.generation}: {before} and {event.owner}"
                    )


def _incarnations(events: list[Event]) -> Iterator[str]:
    """An id of a static member is out when the next one has its assignment."""
    seen: dict[str, dict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        if event.instance is not None and event.is_accepted:
            seen[event.instance][event.member].append(event)
    for instance, ids in seen.items():
        firsts = sorted((_first_proof_ns(mine), member) for member, mine in ids.items())
        for (_, older), (first_ns, newer) in pairwise(firsts):
            late = [event for event in ids[older] if event.sent_ns > first_ns]
            if late:
                yield f"{instance}: {late[0]} was accepted after {newer} was let in"


def _first_proof_ns(events: list[Event]) -> float:
    """When an id was surely in: what was only told, and not written down, may be undone by the broker's death."""
    return min((event.received_ns for event in events if event.kind in (SYNC, COMMIT)), default=float("inf"))


def _generations(events: list[Event]) -> Iterator[str]:
    accepted = sorted((event for event in events if event.is_accepted), key=attrgetter("sent_ns"))
    # What a broker that dies between two generations has told of the next one does not count: it was not written down.
    proofs = sorted((e for e in accepted if e.kind in (SYNC, COMMIT)), key=attrgetter("received_ns"))
    newest, at = -1, 0
    for event in accepted:
        while at < len(proofs) and proofs[at].received_ns < event.sent_ns:
            newest = max(newest, proofs[at].generation)
            at += 1
        if event.generation < newest:
            yield f"{event} was accepted when generation {newest} was there"


def _offsets(events: list[Event]) -> Iterator[tuple[str, str]]:
    tried: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by partition: when, and what
    commits: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # sent, received, what
    fetches: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for event in events:
        for partition, offset in event.places:
            if event.kind == TRYING:
                tried[partition].append((event.sent_ns, offset))
            elif event.kind == COMMIT and event.code == 0:
                commits[partition].append((event.sent_ns, event.received_ns, offset))
            elif event.kind == FETCH and event.code == 0:
                fetches[partition].append((event.sent_ns, event.received_ns, offset))
    for partition, done in commits.items():
        for _, offset, before in _with_largest_before(done, done):
            if offset <= before:
                yield "behind", f"partition {partition}: {offset} was committed after {before}"
    for partition, seen in fetches.items():
        for (_, received_ns, offset), _, before in _with_largest_before(seen, commits[partition]):
            if offset < before:
                yield "lost", f"partition {partition}: {before} was committed, and then {offset} read"
            if offset != NOTHING and all(
                at > received_ns or value != offset for at, value in tried[partition]
            ):
                yield "unknown", f"partition {partition}: {offset} was read, and nobody has committed it"


def _with_largest_before(
    events: list[tuple[int, int, int]], commits: list[tuple[int, int, int]]
) -> Iterator[tuple[tuple[int, int, int], int, int]]:
    """Each event with its offset and the largest one of the commits that had ended when it began."""
    ended = sorted(commits, key=lambda commit: commit[1])
    largest, at = NOTHING, 0
    for event in sorted(events):
        while at < len(ended) and ended[at][1] < event[0]:
            largest = max(largest, ended[at][2])
            at += 1
        yield event, event[2], largest


def summary(findings: list[Finding], most: int = 10) -> str:
    shown = "\n".join(f"  {found.kind} in {found.group}: {found.text}" for found in findings[:most])
    return f"{len(findings)} findings\n{shown}"
