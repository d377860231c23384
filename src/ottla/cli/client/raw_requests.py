"""Asks brokers what the client library has no call for: requests of the protocol itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.client.connection import fail
from ottla.cli.connection_settings import parse_settings
from ottla.cli.options import ConnectionOptions
from ottla.client.cluster import Cluster
from ottla.client.security import Security
from ottla.errors import BrokerError


@contextmanager
def raw_cluster(options: ConnectionOptions) -> Iterator[Cluster]:
    """A cluster to be asked. What goes wrong ends the command."""
    try:
        given = dict(parse_settings(options.settings or ()))
        with Cluster(options.bootstrap, Security.from_options(given), timeout_s=options.timeout) as cluster:
            yield cluster
    except BrokerError as error:
        fail(str(error))
