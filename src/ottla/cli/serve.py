"""`ottla serve`: a broker in the foreground, or several behind one command, until told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.serve_settings import Options, data_dir, read_options, refuse_one
from ottla.errors import ConfigError

app = typer.Typer()

_HELP = """\
Start a broker and keep it running until Ctrl-C or SIGTERM.

\b
Examples:
  ottla serve                                  on 127.0.0.1:9092, data under your data directory
  ottla serve --data ./data --listen :9192     elsewhere
  ottla serve --listen 0.0.0.0:9092 --advertise kafka.example.org:9092
  ottla serve --config server.properties       with Kafka's own file
  ottla serve --set num.partitions=6 --set log.flush.interval.messages=1
  ottla serve --brokers 4                      four broker processes, one cluster

With log.flush.interval.messages=1 (flush.messages=1 for one topic) a record is on disk before it is acknowledged.
"""


@app.command(help=_HELP)
def serve(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Where topics and records are kept.", show_default="~/.local/share/ottla"
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Where to listen.", show_default="127.0.0.1:9092"),
    ] = None,
    advertise: Annotated[
        str | None, typer.Option("--advertise", metavar="HOST:PORT", help="Where clients are told to come.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A server.properties as Kafka has it.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any of Kafka's broker keys; repeatable."),
    ] = None,
    brokers: Annotated[int, typer.Option("--brokers", min=1, help="How many broker processes.")] = 1,
    http: Annotated[
        str,
        typer.Option(
            "--http", metavar="HOST:PORT", help="Where /metrics and /healthz are; `off` for nowhere."
        ),
    ] = "127.0.0.1:9644",
    log_requests: Annotated[bool, typer.Option("--log-requests", help="One line for every request.")] = False,
    log_format: Annotated[str, typer.Option("--log-format", help="`text` or `json`.")] = "text",
    node: Annotated[int | None, typer.Option("--node", hidden=True)] = None,
) -> None:
    options = Options(data, listen, advertise, config, assignments or (), http, node)
    if log_format not in ("text", "json"):
        raise ConfigError(f"--log-format {log_format!r} is not text or json")
    if brokers == 1 or node is not None:
        from ottla.cli.serve_one import run_broker

        run_broker(options, log_requests=log_requests, json_logs=log_format == "json")
        return
    from ottla.cli.serve_many import run_brokers

    properties = read_options(options)
    if "log.dirs" in properties or "log.dir" in properties:
        raise ConfigError("--brokers keeps its data under --data; take log.dirs out of the settings")
    refuse_one(data_dir(options, properties))
    run_brokers(brokers)
