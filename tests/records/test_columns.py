"""Columns of rows, and codes, are written down twice, for C and for Python: they must agree."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from ottla.records import columns, kernel
from ottla.records.cleaning import codes as cleaning_codes
from ottla.records.cleaning import compact_kernel

_IN_C = re.compile(r"^    (\w+) = (\d+)$", re.MULTILINE)


def _in_python(module: ModuleType) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper()}


@pytest.mark.parametrize("module", [columns, cleaning_codes])
def test_c_and_python_have_the_same(module: ModuleType) -> None:
    source = Path(str(module.__file__)).with_suffix(".pxd").read_text()
    assert {name: int(value) for name, value in _IN_C.findall(source)} == _in_python(module)


def test_every_row_is_as_wide_as_it_has_columns() -> None:
    found = _in_python(columns)
    for width, prefix in (("REC_ROW", "REC_"), ("AHEAD_ROW", "AHEAD_")):
        named = sorted(value for name, value in found.items() if name.startswith(prefix) and name != width)
        assert named == list(range(found[width]))
    names = list(found)
    of_batches = names[names.index("POSITION") : names.index("REC_ROW")]
    assert [found[name] for name in of_batches] == list(range(found["ROW"]))


def test_the_kernels_pass_them_on() -> None:
    assert all(getattr(kernel, name) == value for name, value in _in_python(columns).items())
    cleaning = _in_python(cleaning_codes)
    assert all(getattr(compact_kernel, name) == value for name, value in cleaning.items())
