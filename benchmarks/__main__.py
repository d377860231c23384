"""`make bench`: python -m benchmarks [--only NAME ...] [--quick] [--without-kafka] [--beside PYTHON] [--dir DIR]"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import report
from benchmarks.contest import beside_another
from benchmarks.measure import FULL, QUICK, Bench, Figure

_NAMES = (
    "append", "recovery", "lookup", "partitions", "many_partitions", "compaction", "verify", "memory", "produce",
    "fetch", "latency", "durable", "clients", "start", "transactions", "spark_read", "groups", "spark_write",
    "spark_pipeline",
)  # fmt: skip
BENCHMARKS: dict[str, Callable[[Bench], list[Figure]]] = {
    name: import_module(f"benchmarks.{name}").run for name in _NAMES
}
RACES = ("produce", "fetch", "latency", "durable", "clients", "transactions", "groups")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory, as ratios.")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="these alone")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: do they run, not how fast")
    parser.add_argument("--without-kafka", action="store_true", help="leave out what needs Java")
    parser.add_argument(
        "--dir", type=Path, help="where data goes (30 GB free); a temporary directory by default"
    )
    parser.add_argument(
        "--beside",
        metavar="PYTHON",
        help="the Python of another ottla, to be raced instead of Kafka; only what races brokers",
    )
    args = parser.parse_args()
    if args.beside:
        args.only = [name for name in args.only if name in RACES]
    scale = QUICK if args.quick else FULL
    if args.without_kafka:
        scale = dataclasses.replace(scale, kafka_rounds=0)
    figures = []
    if args.dir:
        args.dir.mkdir(parents=True, exist_ok=True)
    print(f"measured: ottla from {report.measured()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-", dir=args.dir) as work_dir:
        for name in args.only:
            print(f"{name} ...", flush=True)
            found = BENCHMARKS[name](Bench(scale, Path(work_dir), beside=args.beside))
            if args.beside:
                found = list(map(beside_another, found))
            figures += found
            print(report.table(found, judged=not args.quick), flush=True)
    # Only a whole run makes a page that can be compared with the one before.
    if not (args.quick or args.without_kafka or args.beside) and len(args.only) == len(BENCHMARKS):
        report.PAGE.write_text(report.page(figures, scale))
        print(f"written: {report.PAGE.name}")


if __name__ == "__main__":
    main()
