"""`make bench` at tiny sizes and without Kafka: every benchmark runs and gives its figures."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from benchmarks import report
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.contest import beside_another
from benchmarks.measure import FULL, QUICK, Bench, Cost, Figure, alternate, clock, touch_memory

TINY = dataclasses.replace(QUICK, kafka_rounds=0)
FIGURES = {
    "append": 2,
    "recovery": 2,
    "lookup": 2,
    "partitions": 1,
    "many_partitions": 5,
    "compaction": 1,
    "verify": 2,
    "memory": 3,
    "produce": 11,
    "fetch": 2,
    "latency": 2,
    "durable": 2,
    "clients": 4,
    "start": 5,
    "transactions": 2,
    "spark_read": 5,
    "groups": 4,
    "spark_write": 1,
    "spark_pipeline": 1,
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_gives_its_figures_and_leaves_nothing_behind(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    spark = request.getfixturevalue("spark") if name.startswith("spark_") else None
    figures = BENCHMARKS[name](Bench(TINY, tmp_path, spark))
    assert len(figures) == FIGURES[name]
    assert all(figure.value > 0 and figure.what and figure.ours and figure.unit for figure in figures)
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_a_table_for_what_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "--quick", "--only", "append", "--dir", str(tmp_path)])
    main()
    printed = capsys.readouterr().out
    assert re.search(r"^\| append 110 KB batches .*% of its speed \| >= 60 \|  \|$", printed, re.MULTILINE)
    assert "recover" not in printed
    assert "written" not in printed  # a part of the benchmarks makes no page


def test_the_page_has_figures_verdicts_and_versions() -> None:
    figures = [
        Figure("fast", "1 s", "other: 4 s", 4.0, "times as fast", ">= 4", True),
        Figure("slow", "1 s", "other: 2 s", 2.0, "times as fast", ">= 4", False),
    ]
    page = report.page(figures, FULL)
    assert "| fast | 1 s | other: 4 s | 4 times as fast | >= 4 | met |" in page
    assert "| slow | 1 s | other: 2 s | 2 times as fast | >= 4 | **missed** |" in page
    assert re.search(r"\d+ cores .* GiB of memory", page)
    assert "Apache Kafka 4.2.0" in page
    assert re.search(r"\(the checkout, \d+ of \d+ modules compiled\)", page)  # which is what tests run in


def test_sides_take_turns_and_the_median_counts() -> None:
    order: list[str] = []
    taken = {"a": iter([1.0, 9.0, 2.0]), "b": iter([5.0, 5.0, 6.0])}

    def side(name: str) -> Cost:
        order.append(name)
        return Cost(next(taken[name]), 0.0, 0.0)

    first, second = alternate(3, lambda: side("a"), lambda: side("b"))
    assert order == ["a", "b"] * 3
    assert (first.seconds, second.seconds) == (2.0, 5.0)


def test_the_clock_tells_computing_from_waiting() -> None:
    cost = clock(lambda: sum(range(2_000_000)))
    assert cost.user_s > 0
    assert cost.seconds > 0


def test_memory_is_touched_for_any_size() -> None:
    touch_memory(1)
    touch_memory((16 << 20) + 1)


def test_another_ottla_can_take_kafkas_place(tmp_path: Path) -> None:
    figures = BENCHMARKS["fetch"](Bench(TINY, tmp_path, beside=sys.executable))
    judged = [beside_another(figure) for figure in figures]
    assert all(figure.beside.startswith("before: ") and figure.target == ">= 0.97" for figure in judged)
    worse = beside_another(figures[0]._replace(value=0.9))
    assert not worse.is_met
