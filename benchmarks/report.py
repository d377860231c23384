"""docs/benchmarks.md: the figures of one run, and the machine and versions they were taken with."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from tests.interop.kafka import NEWEST

from benchmarks.measure import Figure, Scale
from ottla import compiled

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "benchmarks.md"

_HEAD = """# Benchmarks

Written by `make bench`; do not edit. What is measured is the wheel, installed as users install it. Both sides of a
ratio take turns in one run, and the median of the rounds counts. Memory is touched before and data deleted between
rounds, because on a virtual machine the first touch of a page costs more than what is measured. The page cache is
warm on both sides. Kafka's own log lines are its clock: the start of its JVM does not count.
"""


def table(figures: list[Figure], *, judged: bool = True) -> str:
    """The figures as a Markdown table. A quick run is not judged: at its sizes all is start and sync."""
    rows = ["| what | ottla | beside it | figure | target | |", "| --- | --- | --- | --- | --- | --- |"]
    for figure in figures:
        met = "" if not (judged and figure.target) else "met" if figure.is_met else "**missed**"
        value = f"{figure.value:.3g} {figure.unit}"
        rows.append(
            f"| {figure.what} | {figure.ours} | {figure.beside} | {value} | {figure.target} | {met} |"
        )
    return "\n".join(rows) + "\n"


def page(figures: list[Figure], scale: Scale) -> str:
    facts = "\n".join(f"- {fact}" for fact in _facts(scale))
    return f"{_HEAD}\n{table(figures)}\n## Machine and versions\n\n{facts}\n"


def _facts(scale: Scale) -> list[str]:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [
        f"{time.strftime('%Y-%m-%d')}; {os.cpu_count()} cores ({_processor()}), "
        f"{memory_bytes / 2**30:.0f} GiB of memory, {platform.system()} {platform.release().split('-')[0]}",
        f"Python {platform.python_version()}, ottla {version('ottla')} "
        f"({measured()}), crc32c {version('crc32c')}",
        f"Apache Kafka {NEWEST}" if scale.kafka_rounds else "without Apache Kafka",
        f"rounds: {scale.rounds}, beside Kafka {scale.kafka_rounds}",
    ]


def measured() -> str:
    """Which ottla: `make bench` runs with one that was installed from the wheel, as users have it."""
    origin = (
        "the checkout" if Path(compiled.__file__).is_relative_to(_ROOT / "src") else "the installed wheel"
    )
    meant, interpreted = len(compiled.meant()), len(compiled.interpreted())
    return f"{origin}, {meant - interpreted} of {meant} modules compiled"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
