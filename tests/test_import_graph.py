"""No module imports one that imports it, nothing imports upwards, and no folder has more files than one takes in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.import_graph import HIDDEN, TOP, TYPES, Import

from tools import import_graph

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return import_graph.read_imports(import_graph.read_modules(ROOT / "src"))


def test_no_modules_import_one_another(imports: list[Import]) -> None:
    assert import_graph.cycles(imports) == []


def test_nothing_imports_upwards(imports: list[Import]) -> None:
    contracts = import_graph.read_contracts(ROOT / "pyproject.toml")
    assert list(map(str, import_graph.upward_imports(imports, contracts))) == []


def test_no_folder_has_too_many_files() -> None:
    assert list(import_graph.full_folders(ROOT / "src/ottla")) == []


def test_the_picture_of_the_floors_is_true(imports: list[Import]) -> None:
    page = import_graph.PAGE.read_text()
    assert page == import_graph.with_picture(page, import_graph.picture(imports)), "run `make docs`"


# -- of a package of its own: each of these is noticed

SOURCES = {
    "top/__init__.py": "",
    "top/shop.py": "from pack.middle import hall\nfrom pack.low.cellar import wine",
    "middle/__init__.py": "",
    "middle/hall.py": "def open():\n    import pack.low.cellar\n    from pack.top import shop",
    "low/__init__.py": "",
    "low/cellar.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.low.stairs import Step",
    "low/stairs.py": "from pack.low import cellar\nclass Step: ...",
}
CONTRACT: dict[str, object] = {"name": "down", "layers": ["pack.top", "pack.middle", "pack.low"]}


@pytest.fixture
def small(tmp_path: Path) -> list[Import]:
    for name, text in SOURCES.items():
        path = tmp_path / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return import_graph.read_imports(import_graph.read_modules(tmp_path))


def test_imports_are_told_apart(small: list[Import]) -> None:
    assert sorted(small) == [
        ("pack.low.cellar", "pack.low.stairs", TYPES, 3),
        ("pack.low.stairs", "pack.low.cellar", TOP, 1),
        ("pack.middle.hall", "pack.low.cellar", HIDDEN, 2),
        ("pack.middle.hall", "pack.top.shop", HIDDEN, 3),
        ("pack.top.shop", "pack.low.cellar", TOP, 2),
        ("pack.top.shop", "pack.middle.hall", TOP, 1),
    ]


def test_a_cycle_is_found_whatever_kind_of_import_closes_it(small: list[Import]) -> None:
    assert import_graph.cycles(small) == [
        ["pack.low.cellar", "pack.low.stairs"],
        ["pack.middle.hall", "pack.top.shop"],
    ]


def test_an_import_upwards_is_found_inside_of_a_function(small: list[Import]) -> None:
    (found,) = import_graph.upward_imports(small, [CONTRACT])
    assert found.found == ("pack.middle.hall", "pack.top.shop", HIDDEN, 3)


def test_neighbours_on_a_floor_may_be_out_of_bounds(small: list[Import]) -> None:
    contract: dict[str, object] = {"name": "apart", "containers": ["pack"], "layers": ["top | middle", "low"]}
    between = [one.found.importer for one in import_graph.upward_imports(small, [contract])]
    assert sorted(between) == ["pack.middle.hall", "pack.top.shop"]


def test_a_folder_with_too_many_files_is_found(tmp_path: Path) -> None:
    for number in range(import_graph.MOST_FILES + 1):
        (tmp_path / f"{number}.py").touch()
    assert import_graph.full_folders(tmp_path) == {".": import_graph.MOST_FILES + 1}


def test_arrows_that_follow_from_others_are_left_out(small: list[Import]) -> None:
    downwards = [one for one in small if one.imported != "pack.top.shop"]
    assert import_graph.picture(downwards, "pack").splitlines() == [
        "flowchart TD",
        "    middle --> low",
        "    top --> middle",
    ]
