"""Opens the transport that the options choose: files, brokers, or both together.

A transport is opened where it is used: on the driver to plan, in each task to read. It is not pickled; options are.
"""

from __future__ import annotations

from ottla.spark.options import ReadOptions
from ottla.spark.transport.base import Transport


def open_transport(options: ReadOptions) -> Transport:
    """The transport that the options ask for."""
    if not options.paths:
        from ottla.spark.transport.brokers import FetchTransport

        return FetchTransport(options)
    from ottla.spark.transport.files import FileTransport

    if options.servers is None:
        return FileTransport(options)
    from ottla.spark.transport.brokers import FetchTransport
    from ottla.spark.transport.combined import CombinedTransport

    return CombinedTransport(FileTransport(options), FetchTransport(options))
