"""Every module of src has a test file of its own name, or a line in where.txt that says where it is tested."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
GENERATED = "ottla.protocol.messages."  # tested as a whole: tests/protocol/test_messages_against_kio.py


def modules() -> list[str]:
    paths = (path.relative_to(ROOT / "src").with_suffix("") for path in (ROOT / "src/ottla").rglob("*.py"))
    names = (".".join(path.parts) for path in paths if path.name != "__init__")
    return sorted(name for name in names if not name.startswith(GENERATED))


def own_test(module: str) -> Path:
    *folders, name = module.split(".")[1:]
    return ROOT.joinpath("tests", *folders, f"test_{name}.py")


def elsewhere() -> dict[str, str]:
    lines = (ROOT / "tests/where.txt").read_text().splitlines()
    entries = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    found = {module: place for module, _, place in entries}
    assert len(found) == len(entries), "a module is listed twice"
    return found


def test_every_module_has_a_test_of_its_name_or_says_where_it_is_tested() -> None:
    listed = elsewhere()
    lost = [module for module in modules() if not own_test(module).exists() and module not in listed]
    assert not lost, "give each a test file of its name, or a line in tests/where.txt"


def test_where_it_is_tested_is_a_file_with_tests_or_a_reason() -> None:
    for module, place in elsewhere().items():
        if not place.startswith("- "):
            path = ROOT / place
            assert path.name.startswith("test_"), f"{module}: {place}"
            assert "def test_" in path.read_text(), f"{module}: {place}"


def test_nothing_listed_is_out_of_date() -> None:
    known = set(modules())
    for module in elsewhere():
        assert module in known, f"{module} is not in src"
        assert not own_test(module).exists(), f"{module} has a test file of its own name"
