"""docs/architecture.md is true of the tree: every floor and room is named, in the order in which they may import."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/ottla"
PAGE = (ROOT / "docs/architecture.md").read_text()
HOUSE = PAGE.partition("## The house")[2].partition("```mermaid")[0].replace(r"\|", "/")
ROWS = [line.split("|")[1:3] for line in HOUSE.splitlines() if line.startswith("|")]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def test_every_folder_is_named() -> None:
    folders = (path.parent for path in PACKAGE.glob("*/**/__init__.py"))
    names = {f"`{folder.relative_to(PACKAGE).as_posix()}/`" for folder in folders}
    assert {name for name in names if name not in HOUSE} == set()


def test_floors_stand_in_the_order_in_which_they_may_import() -> None:
    floors = [re.findall(r"ottla\.(\w+)", layer) for layer in CONTRACTS[0]["layers"]]
    told = [re.findall(r"`(\w+)(?:/|\.py)`", floor) for floor, _ in ROWS]
    assert [row for row in told if row] == floors


def test_rooms_stand_in_the_order_in_which_they_may_import() -> None:
    inside = [contract for contract in CONTRACTS if "containers" in contract]
    assert {contract["containers"][0] for contract in inside} > {"ottla.coordinator", "ottla.storage"}
    for contract in inside:
        folder = contract["containers"][0].removeprefix("ottla.")
        is_room = {path.parent.name for path in (PACKAGE / folder).glob("*/__init__.py")}
        layers = [re.findall(r"\w+", layer) for layer in contract["layers"]]
        rooms = [[name for name in layer if name in is_room] for layer in layers]
        told = [re.findall(rf"`{folder}/(\w+)/`", room) for _, room in ROWS]
        assert [row for row in told if row] == [row for row in rooms if row]
