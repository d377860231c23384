"""`ottla log verify`: shows what the check finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ottla.cli.json_text import to_json
from ottla.cli.log_output import finding_line
from ottla.cli.log_progress import progress_bar
from ottla.logtools.findings import DEFECT, NOTE, Finding
from ottla.logtools.source import Target
from ottla.logtools.verify import verify
from ottla.storage import layout
from ottla.storage.fs import FileSystem


def run(fs: FileSystem, target: Target, path: str, *, as_json: bool) -> bool:
    """Whether the target is healthy."""
    with progress_bar(fs, target, "verify") as on_progress:
        told = tell(verify(fs, target, on_progress), as_json=as_json)
    return verdict(path, told, as_json=as_json)


def tell(findings: Iterable[Finding], *, as_json: bool) -> Counter[str]:
    """Print findings; how many there are of each level."""
    told = Counter[str]()
    zero_tails = 0
    for finding in findings:
        told[finding.level] += 1
        if finding.code == "zero-tail" and not as_json and not finding.file.endswith(layout.LOG):
            zero_tails += 1  # every log that is open, or was killed, has two: one line tells it
            continue
        print(to_json(finding.as_json()) if as_json else finding_line(finding))
    if zero_tails:
        print(
            f"note: {_count(zero_tails, 'index file')} with room left at the end, as a writer leaves it [zero-tail]"
        )
    return told


def verdict(path: str, told: Counter[str], *, as_json: bool) -> bool:
    """Print, and return, whether all is well."""
    defects = told[DEFECT]
    if not as_json:
        counts = f"{_count(defects, 'defect')}, {_count(told[NOTE], 'note')}"
        advice = f"; `ottla log repair {path}` says what can be mended" if defects else ""
        print(f"{path}: {'healthy' if not defects else 'DAMAGED'} ({counts}){advice}")
    return defects == 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
