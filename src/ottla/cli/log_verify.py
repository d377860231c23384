"""`ottla log verify`: shows what the check finds."""

from __future__ import annotations

from ottla.cli.json_text import to_json
from ottla.cli.log_output import finding_line
from ottla.cli.log_progress import progress_bar
from ottla.logtools.findings import DEFECT, NOTE
from ottla.logtools.source import Target
from ottla.logtools.verify import verify
from ottla.storage import layout
from ottla.storage.fs import FileSystem


def run(fs: FileSystem, target: Target, path: str, *, as_json: bool) -> bool:
    """Whether the target is healthy."""
    defects = notes = zero_tails = 0
    with progress_bar(fs, target, "verify") as on_progress:
        for finding in verify(fs, target, on_progress):
            defects += finding.level == DEFECT
            notes += finding.level == NOTE
            if finding.code == "zero-tail" and not as_json and not finding.file.endswith(layout.LOG):
                zero_tails += 1  # every log that is open, or was killed, has two: one line tells it
                continue
            print(to_json(finding.as_json()) if as_json else finding_line(finding))
    if not as_json:
        if zero_tails:
            print(
                f"note: {_count(zero_tails, 'index file')} with room left at the end, as a writer leaves it [zero-tail]"
            )
        verdict = f"{_count(defects, 'defect')}, {_count(notes, 'note')}"
        advice = f"; `ottla log repair {path}` says what can be mended" if defects else ""
        print(f"{path}: {'healthy' if not defects else 'DAMAGED'} ({verdict}){advice}")
    return defects == 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
