"""The columns of rows are written down twice, for C and for Python: they must agree."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.records import columns, kernel

_IN_C = re.compile(r"^    (\w+) = (\d+)$", re.MULTILINE)


def _in_python() -> dict[str, int]:
    return {name: value for name, value in vars(columns).items() if name.isupper()}


def test_c_and_python_have_the_same_columns() -> None:
    source = Path(columns.__file__).with_suffix(".pxd").read_text()
    assert {name: int(value) for name, value in _IN_C.findall(source)} == _in_python()


def test_every_row_is_as_wide_as_it_has_columns() -> None:
    found = _in_python()
    for width, prefix in (("REC_ROW", "REC_"), ("AHEAD_ROW", "AHEAD_")):
        named = sorted(value for name, value in found.items() if name.startswith(prefix) and name != width)
        assert named == list(range(found[width]))
    of_batches = [name for name in found if not name.startswith(("REC_", "AHEAD_")) and name != "ROW"]
    assert sorted(found[name] for name in of_batches) == list(range(found["ROW"]))


def test_the_kernel_passes_them_on() -> None:
    assert all(getattr(kernel, name) == value for name, value in _in_python().items())
