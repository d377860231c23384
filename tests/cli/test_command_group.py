"""What commands share: options that come together, and how a command ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from ottla.cli.command_group import single_command


@dataclass(frozen=True)
class Where:
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The host.")]
    port: Annotated[int, typer.Option("--port", "-p", help="The port.")] = 9092


def command() -> typer.Typer:
    app = single_command()

    @app.command()
    def reach(
        name: Annotated[str, typer.Argument(metavar="NAME")], where: Where, quiet: bool = False
    ) -> bool:
        """Reach a broker."""
        print(name, where.host, where.port, quiet)
        return where.port != 0

    return app


def test_a_dataclass_of_options_stands_for_each_of_them() -> None:
    ran = CliRunner().invoke(command(), ["a", "--host", "b", "-p", "7", "--quiet"])
    assert (ran.exit_code, ran.output) == (0, "a b 7 True\n")
    assert CliRunner().invoke(command(), ["a", "--host", "b"]).output == "a b 9092 False\n"


def test_an_option_of_a_dataclass_without_a_default_is_required() -> None:
    ran = CliRunner().invoke(command(), ["a"])
    assert ran.exit_code == 2
    assert "--host" in ran.output


def test_help_lists_the_options_of_a_dataclass_and_not_the_dataclass() -> None:
    shown = CliRunner().invoke(command(), ["--help"]).output
    assert "--host HOST" in shown
    assert "-p, --port" in shown
    assert "where" not in shown.lower()


def test_a_command_that_returns_false_ends_with_1() -> None:
    assert CliRunner().invoke(command(), ["a", "--host", "b", "--port", "0"]).exit_code == 1
