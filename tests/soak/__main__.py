"""`make soak`: the long checks at their full counts, one after the other, with a table of figures at the end.

python -m tests.soak                                  everything
python -m tests.soak --only bit_rot --seed 7          one check
python -m tests.soak --only faults --seed 1 --case '...'   one case, as a failure prints it
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

from tests.reliability import (
    bit_rot,
    broker_power_loss,
    crowds,
    exactly_once,
    faults,
    groups_under_fire,
    histories,
    kill_under_load,
    mishaps,
    missing_data,
    pipeline_exactly_once,
    power_loss,
    spark_exactly_once,
    torn_files,
    transaction_kills,
)
from tests.reliability.attacks import stories as attacks
from tests.reliability.scenarios import Case, CaseError, run_cases

# Each check, and with how many seeds its full count is reached.
CHECKS: dict[str, tuple[ModuleType, int]] = {
    "torn_files": (torn_files, 1),
    "bit_rot": (bit_rot, 1),
    "faults": (faults, 3),
    "power_loss": (power_loss, 3),
    "histories": (histories, 1),
    "mishaps": (mishaps, 1),
    "missing_data": (missing_data, 1),
    "kill_under_load": (kill_under_load, 1),
    "broker_power_loss": (broker_power_loss, 6),
    "crowds": (crowds, 1),
    "attacks": (attacks, 1),
    "transaction_kills": (transaction_kills, 6),
    "exactly_once": (exactly_once, 1),
    "groups_under_fire": (groups_under_fire, 1),
    "spark_exactly_once": (spark_exactly_once, 1),
    "pipeline_exactly_once": (pipeline_exactly_once, 1),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="The long checks at their full counts.")
    parser.add_argument("--only", action="append", choices=CHECKS, help="this check; may be given again")
    parser.add_argument("--seed", type=int, help="this seed alone")
    parser.add_argument("--case", help="this case alone, as a failure prints it")
    arguments = parser.parse_args()
    figures = []
    for name in arguments.only or CHECKS:
        module, count = CHECKS[name]
        seeds = [arguments.seed] if arguments.seed is not None else list(range(1, count + 1))
        try:
            figures.append(_run(name, module, seeds, arguments.case))
        except CaseError as error:
            print(f"\nFAILED {error}", file=sys.stderr)
            return 1
    if arguments.case is not None and not any(kinds for _, kinds, _ in figures):
        print(f"there is no case {arguments.case!r}", file=sys.stderr)
        return 2
    print("\ncheck              cases    seconds  of each kind")
    for name, kinds, seconds in figures:
        detail = ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items()))
        print(f"{name:<18} {kinds.total():>6,} {seconds:>9.0f}  {detail}")
    return 0


def _run(
    name: str, module: ModuleType, seeds: list[int], only: str | None
) -> tuple[str, Counter[str], float]:
    kinds: Counter[str] = Counter()
    began = time.monotonic()
    for seed in seeds:
        cases = module.cases(seed)
        if only is not None:
            # Not every state of every point of a story is among its cases, but each can be asked for.
            everything = module.states_at(seed, only) if hasattr(module, "states_at") else cases
            cases = (case for case in everything if case.name == only)
        for case in _with_progress(name, seed, run_cases(name, seed, cases)):
            kinds[case.kind] += 1
    return name, kinds, time.monotonic() - began


def _with_progress(name: str, seed: int, cases: Iterator[Case]) -> Iterator[Case]:
    for number, case in enumerate(cases, 1):
        if number % 500 == 0:
            print(f"{name}, seed {seed}: {number:,} cases", flush=True)
        yield case


if __name__ == "__main__":
    sys.exit(main())
