"""The command `ottla`: its groups of commands, loaded when they are used, and how errors end.

Exit codes: 0 fine, 1 a check found defects or a broker did not do it, 2 wrong usage or an error, 130 stopped by
Ctrl-C, 141 nobody reads the output any more.
"""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import ottla
from ottla.errors import BrokerError

# Name: the module whose `app` has the command or commands, and its line in the help. Imported when it is called.
GROUPS = {
    "adopt": ("ottla.cli.adopt", "Take over the data directory of a Kafka broker."),
    "cluster": ("ottla.cli.client.cluster", "Brokers, controller, and how much a cluster holds."),
    "configs": ("ottla.cli.client.configs", "Show and change settings of topics and brokers."),
    "consume": ("ottla.cli.client.consume", "Print the records of a topic."),
    "groups": ("ottla.cli.client.groups", "List and describe consumer groups, move their offsets."),
    "log": ("ottla.cli.log.commands", "Look into, check and repair Kafka log directories."),
    "pipeline": ("ottla.cli.pipeline.commands", "Land topics in tables, exactly once."),
    "produce": ("ottla.cli.client.produce", "Send lines, files or JSON as records to a topic."),
    "records": ("ottla.cli.client.records", "Delete records from the beginning of partitions."),
    "release": ("ottla.cli.release", "Give a data directory back to Kafka."),
    "serve": ("ottla.cli.serve.command", "Start a broker."),
    "spark": ("ottla.cli.spark.commands", "Check, mend and move whole data directories with Spark."),
    "topics": ("ottla.cli.client.topics", "List, describe, create, delete and widen topics."),
    "transactions": (
        "ottla.cli.client.transactions",
        "List and describe transactions, and end one that hangs.",
    ),
}

_HELP = """\
Kafka's log, in Python.

\b
Examples:
  ottla serve                  a broker on 127.0.0.1:9092
  ottla log show DIR           what lies in a partition or data directory
  ottla log dump DIR --json    its batches, one JSON object a line
  ottla log verify DIR         check every byte; exit 1 on defects
  ottla log repair DIR         say what a repair would do (--write does it)
  ottla topics create orders   on any Kafka broker; -b names it
  ottla produce orders FILE    a record a line
  ottla consume orders -f      print records, also those to come
  ottla groups describe NAME   who reads what, and how far behind
  ottla pipeline init          a file that lands topics in a table
  ottla adopt DIR              take over a Kafka broker's data
  ottla version                versions, and what is compiled

`ottla COMMAND --help` explains each command. `ottla --install-completion` makes the shell complete commands, options,
topics and groups.
"""


class LazyGroup(TyperGroup):
    """Knows the names of the groups, and imports one when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted([*super().list_commands(ctx), *GROUPS])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in GROUPS:
            found = super().get_command(ctx, cmd_name)
            if found is None and not ctx.resilient_parsing:
                self._suggest(ctx, cmd_name)
            return found
        module, _ = GROUPS[cmd_name]
        command = typer.main.get_command(import_module(module).app)
        command.name = cmd_name
        return command

    def _suggest(self, ctx: Any, name: str) -> None:
        near = get_close_matches(name, self.list_commands(ctx))
        if near:
            ctx.fail(f"No such command {name!r}. Did you mean {' or '.join(map(repr, near))}?")

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Without importing every group for its line of help."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from typer.core import CompletionItem  # type: ignore[attr-defined]

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [CompletionItem(name, help=GROUPS[name][1] if name in GROUPS else "") for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, text) for name, (_, text) in GROUPS.items()]
        rows += [(name, command.get_short_help_str(limit=80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still buffered must not fail again when Python closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except ModuleNotFoundError as error:
            from ottla.cli.failure import missing_package

            typer.echo(missing_package(error), err=True)
            raise typer.Exit(2) from None
        except (BrokerError, OSError) as error:
            from ottla.cli.failure import one_line

            typer.echo(one_line(error), err=True)
            raise typer.Exit(2) from None
        return result


app = typer.Typer(
    cls=LazyGroup,
    help=_HELP,
    no_args_is_help=True,
    suggest_commands=False,  # those it knows are not all
    rich_markup_mode=None,  # plain help starts twice as fast, and can be piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ottla {ottla.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option("--log-level", metavar="LEVEL", help="Show log lines: debug, info, warning or error."),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", metavar="FORMAT", help="Log lines as text or json.")
    ] = None,
) -> None:
    from ottla.cli import logs

    for name, value, known in (("level", log_level, logs.LEVELS), ("format", log_format, logs.FORMATS)):
        if value is not None and value.lower() not in known:
            raise typer.BadParameter(
                f"{value!r} is not one of {', '.join(known)}", param_hint=f"--log-{name}"
            )
    if context.invoked_subcommand == "serve":  # which sets up its own
        context.obj = [
            f"--log-{name}={value}"
            for name, value in (("level", log_level), ("format", log_format))
            if value is not None
        ]
    elif log_level is not None or log_format is not None:
        logs.set_up_logging(log_level or "info", log_format or "text")


@app.command()
def version(json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> None:
    """Show versions, codecs, and which modules are compiled and which are not.

    \b
    Examples:
      ottla version
      ottla version --json | jq .compiled
    """
    from ottla.cli import versions

    facts = versions.collect()
    typer.echo(versions.as_json(facts) if json else versions.as_text(facts))


def main() -> None:
    try:
        app(prog_name="ottla")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
