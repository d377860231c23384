"""Tables for people: plain lines, as wide as the terminal, or wide enough where there is none."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table

_PIPE_WIDTH = 200  # a table in a file or a pipe is not cut to some terminal's width


def console_for_stdout() -> Console:
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def new_table(*columns: str) -> Table:
    """A column whose name ends in > is set right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.endswith(">")
        made.add_column(
            column.rstrip(">"), justify="right" if right else "left", no_wrap=not right or column == "size>"
        )
    return made
