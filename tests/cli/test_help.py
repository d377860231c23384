"""The help of all commands has one style, and misspelt words get a suggestion."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ottla.cli.command_group import ARGUMENTS, CONNECTION, OPTIONS, OUTPUT, SPARK
from ottla.cli.main import GROUPS, app

SECTIONS = [ARGUMENTS, OPTIONS, OUTPUT, CONNECTION, SPARK]
# Words that mean different things in different commands.
SEVERAL_MEANINGS = {
    "--all",
    "--before",
    "--binary",
    "--codec",
    "--config",
    "--format",
    "--from",
    "--headers",
    "--json",
    "--key",
    "--key-separator",
    "--long",
    "--null",
    "--partition",
    "--partitions",
    "--skip-corrupt",
    "--sql",
    "--to",
    "--topic",
    "-Z",
}


def root() -> Any:
    return typer.main.get_command(app)


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, but `serve`, with the words that call it."""
    for name in (*GROUPS, "version"):
        found = root().get_command(context(), name)
        for inner, command in getattr(found, "commands", {"": found}).items():
            if name != "serve":
                yield (name, *([inner] if inner else [])), command


def context() -> Any:
    return root().make_context("ottla", [], resilient_parsing=True)


COMMANDS = dict(commands())
EVERY = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


@cache
def help_of(*words: str) -> str:
    done = CliRunner().invoke(
        app, [*words, "--help"], prog_name="ottla", terminal_width=80, env={"COLUMNS": "80"}
    )
    assert done.exit_code == 0, done.output
    return done.stdout


@EVERY
def test_help_begins_with_one_sentence_in_the_imperative(words: tuple[str, ...]) -> None:
    text = help_of(*words)
    assert text.startswith(f"Usage: ottla {' '.join(words)} [OPTIONS]")
    sentence = " ".join(text.split("\n\n")[1].split())
    assert re.fullmatch(r"[A-Z][^.]*(\.[^ ][^.]*)*\.", sentence), sentence
    assert not re.match(r"(The|A|An|All|What|Where|This)\b", sentence), sentence


@EVERY
def test_help_has_examples_that_call_the_command(words: tuple[str, ...]) -> None:
    block = re.search(r"\n  (Examples?):\n((?:    .*\n)+)", help_of(*words))
    assert block is not None
    lines = block[2].replace("\\\n", "").splitlines()
    assert all(f"ottla {' '.join(words)}" in line for line in lines), lines
    assert block[1] == ("Example" if len(lines) == 1 else "Examples")


@EVERY
def test_help_fits_80_columns(words: tuple[str, ...]) -> None:
    assert [line for line in help_of(*words).splitlines() if len(line) > 80] == []


@EVERY
def test_arguments_and_options_stand_in_sections_of_the_same_order(words: tuple[str, ...]) -> None:
    found = re.findall(r"^(\w+):$", help_of(*words), re.MULTILINE)
    assert [section for section in found if section in SECTIONS] == [s for s in SECTIONS if s in found]
    assert set(found) <= set(SECTIONS)
    assert OPTIONS in found


@EVERY
def test_every_argument_and_option_is_explained_in_a_sentence(words: tuple[str, ...]) -> None:
    for parameter in COMMANDS[words].params:
        assert parameter.help, parameter.name
        assert re.fullmatch(r"[A-Z-].*\.", parameter.help), parameter.help
    assert not re.search(r"<(str|int|float)>", help_of(*words))


def test_the_same_option_has_the_same_words_everywhere() -> None:
    texts = defaultdict(set)
    for command in COMMANDS.values():
        for parameter in command.params:
            long = [name for name in parameter.opts if name.startswith("--")]
            for name in long or parameter.opts if parameter.param_type_name == "option" else ():
                texts[name].add(parameter.help)
    assert {name for name, found in texts.items() if len(found) > 1} <= SEVERAL_MEANINGS


def test_options_of_the_connection_come_in_the_same_order() -> None:
    orders = set()
    for words in COMMANDS:
        section = re.search(r"^Connection:\n(.*)", help_of(*words), re.MULTILINE | re.DOTALL)
        if section is not None:
            orders.add(tuple(re.findall(r"^  (?:-\w, )?(-\S+)", section[1], re.MULTILINE)))
    assert orders == {("--bootstrap", "-X", "--timeout")}


@pytest.mark.parametrize("group", [(), *sorted({words[:1] for words in COMMANDS if len(words) > 1})])
def test_a_group_fits_80_columns_and_names_its_commands(group: tuple[str, ...]) -> None:
    text = help_of(*group)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    named = re.findall(r"^  ([a-z-]+)  ", text.partition("\nCommands:\n")[2], re.MULTILINE)
    assert set(named) >= {words[len(group)] for words in COMMANDS if words[: len(group)] == group}


def test_serve_looks_like_the_other_commands() -> None:
    text = help_of("serve")
    assert text.startswith("Usage: ottla serve [OPTIONS]\n\n  Start a broker ")
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "\n  Examples:\n    ottla serve" in text
    assert re.findall(r"^(\w+):$", text, re.MULTILINE) == ["Options"]
    options = text.partition("\nOptions:\n")[2]
    explained = [" ".join(part.split()) for part in re.split(r"^  -", options, flags=re.MULTILINE)[1:]]
    assert all(re.search(r" [A-Z`][^A-Z].*\.$", one) for one in explained), explained


# -- misspelt


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (("lgo",), "'log'"),
        (("topic", "list"), "'topics'"),
        (("consum", "orders"), "'consume'"),
        (("verson",), "'version'"),
        (("topics", "lits"), "'list'"),
        (("topics", "list", "--lnog"), "--long"),
        (("log", "show", "--jsn", "x"), "--json"),
    ],
)
def test_a_misspelt_command_or_option_gets_a_suggestion(words: tuple[str, ...], suggestion: str) -> None:
    done = CliRunner().invoke(app, list(words), prog_name="ottla")
    assert done.exit_code == 2
    assert suggestion in done.stderr
    assert done.stderr.count("Did you mean") <= 1
    assert "Traceback" not in done.stderr


def test_a_word_like_no_command_gets_no_suggestion() -> None:
    done = CliRunner().invoke(app, ["xyzzy"], prog_name="ottla")
    assert (done.exit_code, "Did you mean" in done.stderr) == (2, False)
    assert "No such command 'xyzzy'" in done.stderr
