"""The help of `ottla serve` in the style of the other commands, which are not made with argparse."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import NoReturn

_WIDTH = 78


class ServeParser(argparse.ArgumentParser):
    """Knows what a misspelt option may have meant."""

    def error(self, message: str) -> NoReturn:
        from difflib import get_close_matches

        word = re.search(r"--[\w-]+", message)
        near = get_close_matches(word[0], self._option_string_actions, 1) if word else []
        self.print_usage(sys.stderr)
        suggestion = f" Did you mean {near[0]}?" if near and word and near[0] != word[0] else ""
        self.exit(2, f"Try 'ottla serve -h' for help.\n\nError: {message}.{suggestion}\n")


class ServeHelp(argparse.RawDescriptionHelpFormatter):
    """Usage, a sentence, examples, options: each explained in a sentence."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_WIDTH)

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage or "%(prog)s [OPTIONS]", actions, groups, prefix or "Usage: ")

    def start_section(self, heading: str | None) -> None:
        super().start_section(heading.capitalize() if heading else heading)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return textwrap.indent(text, "  ")

    def _expand_help(self, action: argparse.Action) -> str:
        text = super()._expand_help(action)
        return f"{text[:1].upper()}{text[1:].rstrip('.')}."
