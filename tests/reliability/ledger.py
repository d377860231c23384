"""Is a partition what its producers were told it is? A pure checker of what was sent, acknowledged and read.

Each record says who sent it and its number, counted from 0 in the order of sending. From that and a whole read of the
partition follow all findings:

    hole       an offset is missing, or comes twice
    unknown    a record that nobody sent
    lost       acknowledged, and not there
    moved      acknowledged at an offset where another record is
    duplicate  there twice, although its producer is idempotent
    order      before a record that was sent earlier; of a producer that may repeat records, the first of each counts
    skipped    there, although an earlier one of the same idempotent producer is not
    changed    an earlier read had another record at this offset, or one where there is none now
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_SEPARATOR = b"|"


class Entry(NamedTuple):
    """One record as it was read."""

    offset: int
    sender: str
    number: int


class Finding(NamedTuple):
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass
class Sender:
    """What one producer sent to one partition. `acked` has the offset of each acknowledged record, if it was told."""

    is_idempotent: bool
    sent: int = 0
    acked: dict[int, int | None] = field(default_factory=dict)

    def copy(self) -> Sender:
        """As it is now; another thread may go on with this one."""
        acked = self.acked.copy()  # first: what is acknowledged was sent before
        return Sender(self.is_idempotent, self.sent, acked)


def value_of(sender: str, number: int, filler: bytes = b"") -> bytes:
    """The value of a record that `entry_of` finds its way back from."""
    return b"%s|%d|%s" % (sender.encode(), number, filler)


def entry_of(offset: int, value: bytes | None) -> Entry:
    """A record as read; one that no sender can have made is of nobody."""
    name, _, rest = (value or b"").partition(_SEPARATOR)
    number, separator, _ = rest.partition(_SEPARATOR)
    if not separator or not number.isdigit():
        return Entry(offset, repr(value), -1)
    return Entry(offset, name.decode(errors="replace"), int(number))


def check(
    senders: Mapping[str, Sender],
    read: Sequence[Entry],
    *,
    earlier: Sequence[Entry] = (),
    start_offset: int = 0,
) -> list[Finding]:
    """Everything that is wrong with a partition that was read from `start_offset` to its end.

    Who is still sending may go on: `acked` is then a copy from before the read, `sent` the number after it.
    """
    findings = [*_offsets(read, start_offset), *_changes(read, earlier)]
    places: dict[str, list[Entry]] = {name: [] for name in senders}
    for entry in read:
        sender = senders.get(entry.sender)
        if sender is None or not 0 <= entry.number < sender.sent:
            findings.append(Finding("unknown", f"{_named(entry)} at {entry.offset} was never sent"))
        else:
            places[entry.sender].append(entry)
    at = {entry.offset: entry for entry in read}
    for name, sender in senders.items():
        findings += _sequence(sender, places[name])
        findings += _acknowledged(name, sender, places[name], at)
    return findings


def _named(entry: Entry) -> str:
    return f"{entry.sender} {entry.number}"


def _offsets(read: Sequence[Entry], start_offset: int) -> Iterator[Finding]:
    expected = start_offset
    for entry in read:
        if entry.offset != expected:
            yield Finding("hole", f"{expected} was expected, {entry.offset} came ({_named(entry)})")
        expected = entry.offset + 1


def _changes(read: Sequence[Entry], earlier: Sequence[Entry]) -> Iterator[Finding]:
    now = {entry.offset: entry for entry in read}
    for entry in earlier:
        found = now.get(entry.offset)
        if found != entry:
            what = "nothing" if found is None else _named(found)
            yield Finding("changed", f"{entry.offset} was {_named(entry)} and is {what}")


def _sequence(sender: Sender, entries: Sequence[Entry]) -> Iterator[Finding]:
    seen: set[int] = set()
    highest = -1
    for entry in entries:
        if entry.number in seen:
            if sender.is_idempotent:
                yield Finding("duplicate", f"{_named(entry)} is there again at {entry.offset}")
            continue
        seen.add(entry.number)
        if entry.number < highest:
            yield Finding("order", f"{_named(entry)} at {entry.offset} comes after number {highest}")
        elif sender.is_idempotent and entry.number > highest + 1:
            yield Finding("skipped", f"{_named(entry)} at {entry.offset} comes right after number {highest}")
        highest = max(highest, entry.number)


def _acknowledged(
    name: str, sender: Sender, entries: Sequence[Entry], at: Mapping[int, Entry]
) -> Iterator[Finding]:
    there = {entry.number for entry in entries}
    for number, offset in sender.acked.items():
        if number not in there:
            yield Finding("lost", f"{name} {number}, acknowledged at {offset}")
        elif offset is not None:
            found = at.get(offset)
            if found is None or (found.sender, found.number) != (name, number):
                what = "nothing" if found is None else _named(found)
                yield Finding("moved", f"{name} {number}, acknowledged at {offset}, where {what} is")


def summary(findings: Sequence[Finding], most: int = 10) -> str:
    """For an error message: the first of them, and how many there are."""
    lines = [str(finding) for finding in findings[:most]]
    if len(findings) > most:
        lines.append(f"and {len(findings) - most} more")
    return "\n".join(lines)
