"""`serve` among the other commands; what it does is in main.py."""

from __future__ import annotations

import typer

from ottla.cli.serve import main as served

app = typer.Typer()


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
)
def serve(context: typer.Context) -> None:
    served.run([*(context.obj or ()), *context.args])
