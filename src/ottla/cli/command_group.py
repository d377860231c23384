"""What all commands have in common: how they look in `--help`, how they share options, and how they end.

Help: first a sentence, then what else there is to know, then examples; then arguments and options in sections that
have the same names and the same order everywhere.

A command's parameter whose type is a dataclass of options stands for all of these options. A command that returns
False ends with exit code 1.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

ARGUMENTS, OPTIONS, OUTPUT, CONNECTION, SPARK = "Arguments", "Options", "Output", "Connection", "Spark"
_SECTIONS = (ARGUMENTS, OPTIONS, OUTPUT, CONNECTION, SPARK)


class _Command(TyperCommand):
    """Lists options by the section that they name as their panel."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """TOPIC for what is required, [TOPIC] for what is not."""
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in _SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                section = getattr(parameter, "rich_help_panel", None) or OPTIONS
                if is_argument:  # its name without its type
                    record = record[0].partition(" <")[0], record[1]
                sections[ARGUMENTS if is_argument else section].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class _Group(TyperGroup):
    """Lists each command with its whole first sentence, on two lines if need be: click would cut it off."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, _first_sentence(command.help or "")) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first_sentence(text: str) -> str:
    line = text.partition("\n\n")[0].replace("\n", " ")
    sentence, dot, _ = line.partition(". ")
    return sentence + "." if dot else line


class Commands(typer.Typer):
    """Whose commands all look the same."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        register = super().command(name, **{"cls": _Command, **settings})
        return lambda function: register(_flat(function))


def _flat(function: Callable[..., bool | None]) -> Callable[..., None]:
    """`function` as typer wants it: each option a parameter of its own."""
    parameters: list[inspect.Parameter] = []
    shared: dict[str, tuple[Any, list[str]]] = {}
    for parameter in _parameters(function):
        kind = parameter.annotation
        options = _parameters(kind) if is_dataclass(kind) else [parameter]
        if is_dataclass(kind):
            shared[parameter.name] = kind, [option.name for option in options]
        parameters += options

    @wraps(function)
    def run(**given: Any) -> None:
        for name, (kind, options) in shared.items():
            given[name] = kind(**{option: given.pop(option) for option in options})
        if function(**given) is False:
            raise typer.Exit(1)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(function: Any) -> list[inspect.Parameter]:
    """With types instead of their names; by keyword, as options without a default may follow those with one."""
    types = get_type_hints(function, include_extras=True)
    return [
        parameter.replace(annotation=types[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
    ]


_LOOKS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def command_group(text: str) -> Commands:
    """A group of commands that says `text` of itself."""
    return Commands(cls=_Group, no_args_is_help=True, help=text, **_LOOKS)


def single_command() -> Commands:
    """For a command that is in no group."""
    return Commands(**_LOOKS)
