"""`ottla log verify`: shows what the check finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ottla.cli.json_text import to_json
from ottla.cli.log.output import finding_line
from ottla.cli.log.progress import progress_bar
from ottla.logtools.findings import DEFECT, NOTE, Finding
from ottla.logtools.listing import DataDir, Partition, Target
from ottla.logtools.verify.data_dir import verify
from ottla.storage import layout
from ottla.storage.fs import FileSystem


def run(fs: FileSystem, target: Target, path: str, *, as_json: bool) -> bool:
    """Whether the target is healthy."""
    with progress_bar(fs, target, "verify") as on_progress:
        told = tell(verify(fs, target, on_progress), as_json=as_json)
    return verdict(path, told, as_json=as_json, mend=_what_to_mend(target, path))


def _what_to_mend(target: Target, path: str) -> str | None:
    """The directory to give to `repair`; None for a file that lies in none."""
    if isinstance(target, DataDir) or (isinstance(target, Partition) and target.whole):
        return path
    in_partition = isinstance(target, Partition) and target.topic_partition is not None
    return path.rstrip("/").rpartition("/")[0] or "." if in_partition else None


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


def verdict(path: str, told: Counter[str], *, as_json: bool, mend: str | None) -> bool:
    """Print, and return, whether all is well; `mend` is the directory that a repair can be tried on."""
    defects = told[DEFECT]
    if not as_json:
        counts = f"{_count(defects, 'defect')}, {_count(told[NOTE], 'note')}"
        advice = (
            f"; `ottla log repair {mend}` says what can be mended" if defects and mend is not None else ""
        )
        print(f"{path}: {'healthy' if not defects else 'DAMAGED'} ({counts}){advice}")
    return defects == 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
