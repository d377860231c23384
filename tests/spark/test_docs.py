"""docs/spark.md lists every option with its default and meaning, and no other."""

from __future__ import annotations

from pathlib import Path

from ottla.spark.option_names import OPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def table() -> str:
    rows = ["| option | for | default | meaning |", "| --- | --- | --- | --- |"]
    for option in OPTIONS:
        name = f"`{option.name}`" + (" +" if option.is_ours else "")
        default = f"`{option.default}`" if option.default and " " not in option.default else option.default
        meaning = option.meaning.replace("|", "\\|")
        rows.append(f"| {name} | {option.where} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def test_the_table_of_options_is_complete() -> None:
    assert table() in PAGE.read_text(), f"docs/spark.md should have:\n{table()}"


def test_the_first_example_differs_from_the_connector_in_one_word() -> None:
    text = PAGE.read_text()
    assert '.format("kafka")' in text
    assert '.format("ottla")' in text
