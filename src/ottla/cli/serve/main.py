"""`ottla serve`: a broker in the foreground, or several behind one command, until told to stop.

Its command line is read by argparse: what the other commands are made with takes longer to import than the broker
takes to start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ottla.cli.logs import FORMATS, LEVELS
from ottla.cli.serve.help_page import ServeHelp, ServeParser
from ottla.errors import BrokerError, ConfigError

_HELP = """\
Start a broker and keep it running until Ctrl-C or SIGTERM.

With log.flush.interval.messages=1 (flush.messages=1 for one topic) a record
is on disk before it is acknowledged.

Examples:
  ottla serve                                on 127.0.0.1:9092
  ottla serve --data ./data --listen :9192   elsewhere
  ottla serve --listen 0.0.0.0:9092 --advertise kafka.example.org:9092
  ottla serve --config server.properties     with Kafka's own file
  ottla serve --set num.partitions=6 --set log.flush.interval.messages=1
  ottla serve --brokers 4                    four processes, one cluster
"""


def main(words: Sequence[str]) -> None:
    """Run the command with these words, and end the process as every command of ottla ends."""
    try:
        run(words)
    except KeyboardInterrupt:
        sys.exit(130)
    except (BrokerError, OSError) as error:
        from ottla.cli.failure import one_line

        print(one_line(error), file=sys.stderr)
        sys.exit(2)


def run(words: Sequence[str]) -> None:
    given = _parser().parse_args(words)
    from ottla.cli.serve.settings import Options, data_dir, read_options, refuse_one

    options = Options(
        given.data, given.listen, given.advertise, given.config, given.set, given.http, given.node
    )
    if given.brokers == 1 or given.node is not None:
        from ottla.cli.serve.one import run_broker

        run_broker(
            options, log_requests=given.log_requests, log_level=given.log_level, log_format=given.log_format
        )
        return
    from ottla.cli.serve.many import run_brokers

    properties = read_options(options)
    if "log.dirs" in properties or "log.dir" in properties:
        raise ConfigError("--brokers keeps its data under --data; take log.dirs out of the settings")
    refuse_one(data_dir(options, properties))
    run_brokers(given.brokers, words)


def _parser() -> argparse.ArgumentParser:
    parser = ServeParser("ottla serve", description=_HELP, formatter_class=ServeHelp, allow_abbrev=False)
    add = parser.add_argument
    add(
        "--data",
        metavar="DIR",
        type=Path,
        help="where topics and records are kept (default: ~/.local/share/ottla)",
    )
    add("--listen", metavar="HOST:PORT", help="where to listen (default: 127.0.0.1:9092)")
    add("--advertise", metavar="HOST:PORT", help="where clients are told to come")
    add("--config", metavar="FILE", type=Path, help="a server.properties as Kafka has it")
    add(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="any of Kafka's broker keys. May be repeated",
    )
    add("--brokers", metavar="N", type=_count, default=1, help="how many broker processes (default: 1)")
    add(
        "--http",
        metavar="HOST:PORT",
        help="where /metrics and /healthz are; `off` for nowhere (default: 127.0.0.1:9644, or another port if "
        "that one is taken)",
    )
    add("--log-requests", action="store_true", help="one line for every request")
    add(
        "--log-level",
        type=str.lower,
        choices=LEVELS,
        default="info",
        help="which log lines are shown (default: info)",
    )
    add("--log-format", choices=FORMATS, default="text", help="how log lines look (default: text)")
    add("--node", type=int, help=argparse.SUPPRESS)
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("there must be at least one")
    return count
