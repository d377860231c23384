"""What all groups of commands have in common: how they look in `--help`."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class _Group(TyperGroup):
    """Lists each command with its whole first sentence, on two lines if need be: click would cut it off."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, _first_sentence(command.help or "")) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first_sentence(text: str) -> str:
    line = text.partition("\n")[0]
    sentence, dot, _ = line.partition(". ")
    return sentence + "." if dot else line


def command_group(text: str) -> typer.Typer:
    """A group of commands that says `text` of itself."""
    return typer.Typer(
        cls=_Group,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=text,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
