"""What a check found: defects, and notes on what is odd but harmless."""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import asdict, dataclass

DEFECT = "defect"
NOTE = "note"
# A file whose every entry is wrong is told by its first ones and their number.
_SHOWN_EACH = 20
_WHAT_TO_DO = {
    errno.EACCES: "run as its owner, or give it back its owner and permissions (chown, chmod)",
    errno.EPERM: "run as its owner, or give it back its owner and permissions (chown, chmod)",
    errno.EIO: "the disk may be failing: copy the directory elsewhere, and go on with the copy",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong (or, as a note, only odd), where it is, and what it means."""

    level: str
    code: str
    file: str
    meaning: str
    position: int | None = None
    offset: int | None = None

    def as_json(self) -> dict[str, object]:
        return asdict(self)


class Findings:
    """Collects findings; of the same kind in the same file only the first few are kept, the others counted."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(self, finding: Finding) -> None:
        key = (finding.level, finding.code, finding.file)
        seen = self._counts.get(key, 0)
        self._counts[key] = seen + 1
        if seen < _SHOWN_EACH:
            self._kept.append(finding)

    def defect(
        self, code: str, file: str, meaning: str, *, position: int | None = None, offset: int | None = None
    ) -> None:
        self.add(Finding(DEFECT, code, file, meaning, position, offset))

    def note(
        self, code: str, file: str, meaning: str, *, position: int | None = None, offset: int | None = None
    ) -> None:
        self.add(Finding(NOTE, code, file, meaning, position, offset))

    def unreadable(self, file: str, error: OSError) -> None:
        """A file that is there, and that the operating system does not give: nothing is known of what it holds."""
        self.defect("unreadable", file, f"it cannot be read: {why_unreadable(error)}")

    def uncounted(self, level: str, code: str, file: str, more: int) -> None:
        """As many more of that kind exist, without their places."""
        if more > 0:
            key = (level, code, file)
            self._counts[key] = self._counts.get(key, 0) + more

    def merge(self, other: Findings) -> None:
        """Add what another check found, behind what is here."""
        kept = Counter((finding.level, finding.code, finding.file) for finding in other._kept)
        for finding in other._kept:
            self.add(finding)
        for key, count in other._counts.items():
            self.uncounted(*key, count - kept[key])

    def forget(self, files: set[str]) -> None:
        """Drop what was found in these files."""
        self._kept = [finding for finding in self._kept if finding.file not in files]
        self._counts = {key: count for key, count in self._counts.items() if key[2] not in files}

    @property
    def has_defects(self) -> bool:
        return any(level == DEFECT for level, _, _ in self._counts)

    def all(self) -> list[Finding]:
        """In the order found, then how many more there were."""
        rest = [
            Finding(level, code, file, f"{count - _SHOWN_EACH} more like this")
            for (level, code, file), count in self._counts.items()
            if count > _SHOWN_EACH
        ]
        return [*self._kept, *rest]


def why_unreadable(error: OSError) -> str:
    todo = _WHAT_TO_DO.get(error.errno or 0, "move it away if it does not belong there")
    return f"{error.strerror or error}; {todo}"
