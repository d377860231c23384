"""`ottla log verify`: shows what the check finds."""

from __future__ import annotations

import sys

from ottla.cli.log_output import finding_line, to_json
from ottla.cli.log_progress import progress_bar
from ottla.logtools.findings import DEFECT
from ottla.logtools.source import Target
from ottla.logtools.verify import verify
from ottla.storage.fs import FileSystem


def run(fs: FileSystem, target: Target, path: str, *, as_json: bool) -> bool:
    """Whether the target is healthy."""
    defects = notes = 0
    with progress_bar(fs, target, "verify") as on_progress:
        for finding in verify(fs, target, on_progress):
            print(to_json(finding.as_json()) if as_json else finding_line(finding))
            if finding.level == DEFECT:
                defects += 1
            else:
                notes += 1
    if not as_json:
        sys.stdout.flush()
        verdict = f"{_count(defects, 'defect')}, {_count(notes, 'note')}"
        advice = f"; `ottla log repair {path}` says what can be mended" if defects else ""
        print(f"{path}: {'healthy' if not defects else 'DAMAGED'} ({verdict}){advice}")
    return defects == 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
