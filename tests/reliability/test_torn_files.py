"""A slice of the torn files: every position of the side files, a sample of those of the logs."""

from __future__ import annotations

import pytest

from tests.reliability import torn_files
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
@pytest.mark.parametrize("how", ["clean", "killed"])
def test_a_log_opens_with_the_longest_valid_prefix_wherever_a_file_is_cut(how: str) -> None:
    cases = (case for case in torn_files.cases(seed=1, share=0.07) if case.kind.startswith(how))
    kinds = {case.kind for case in run_cases("torn_files", 1, cases)}
    assert len(kinds) >= 8
