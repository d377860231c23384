"""A slice of the faults: the first time of each operation, and some others."""

from __future__ import annotations

import pytest

from tests.reliability import faults
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_a_disk_that_fails_loses_nothing_that_was_acknowledged() -> None:
    kinds = {case.kind for case in run_cases("faults", 1, faults.cases(seed=1, share=0.05))}
    assert {"pwrite", "sync", "rename", "open", "create", "unlink", "sync_dir", "truncate"} <= kinds
