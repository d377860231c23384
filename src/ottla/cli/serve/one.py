"""One broker process: its loop, its log lines, its signals, its ready line."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import signal
import sys
import time

import uvloop

from ottla import compiled
from ottla.broker import Broker
from ottla.cli.logs import set_up_logging
from ottla.cli.serve.settings import Options, notes, one_broker
from ottla.server.late_imports import import_the_rest
from ottla.server.request_log import logging_dispatcher
from ottla.words import counted, noun

log = logging.getLogger("ottla")


def run_broker(options: Options, *, log_requests: bool, log_level: str, log_format: str) -> None:
    """Start, say so, wait for a signal, stop cleanly."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that closes takes no broker with it
    set_up_logging(log_level, log_format)
    settings = one_broker(options)
    if log_requests:
        settings = dataclasses.replace(settings, make_dispatcher=logging_dispatcher)
    for level, note in notes(options):
        log.log(level, note)
    uvloop.run(_serve(Broker(settings), is_child=options.node is not None))


async def _serve(broker: Broker, *, is_child: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _hung_up)
    if is_child:
        # Nothing ever comes but the end, when the parent is gone.
        loop.add_reader(sys.stdin.fileno(), stop.set)
    await broker.start(_Progress().show)
    took_ms = _age_ms()
    node, topics = broker.settings.config.node_id, len(broker.metadata.image.topics)
    held = f"{topics} {noun(topics, 'topic')}"
    line = f"ottla: ready on {broker.address} (node {node}, {held}, {took_ms} ms)\n"
    print(line, end="", flush=True)  # in one piece: other brokers may write there at the same moment
    if slow := compiled.interpreted():
        share = f"{len(slow)} of {len(compiled.meant())} modules"
        log.warning("slow: %s run interpreted; `ottla version` lists them. %s", share, compiled.REMEDY)
    if broker.http is not None:
        log.info("metrics at http://%s/metrics", broker.http)
    rest = asyncio.ensure_future(_settle(broker))
    halted = asyncio.ensure_future(broker.halted.wait())
    told = asyncio.ensure_future(stop.wait())
    await asyncio.wait((halted, told), return_when=asyncio.FIRST_COMPLETED)
    for task in (rest, halted, told):
        task.cancel()
    if is_child:
        loop.remove_reader(sys.stdin.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)  # a second one ends the process at once
    began = time.monotonic()
    await broker.stop()
    if broker.halted.is_set():
        log.error("every log directory is offline; nothing can be served")
        sys.exit(1)
    _tell_of_the_stop(broker, round((time.monotonic() - began) * 1000))


def _hung_up() -> None:
    log.info("SIGHUP is ignored: settings are read at the start; SIGTERM stops the broker")


def _tell_of_the_stop(broker: Broker, took_ms: int) -> None:
    offline = [path for path in broker.settings.config.log_dirs if path not in broker.clean_dirs]
    if offline:
        log.warning("stopped, but not cleanly: %s will be recovered at the next start", ", ".join(offline))
    else:
        flushed = counted(broker.flushed_partitions, "partition")
        log.info("stopped cleanly: %s flushed in %d ms", flushed, took_ms)


async def _settle(broker: Broker) -> None:
    """What a start leaves for when clients are served already."""
    await import_the_rest(metrics=broker.http is not None)
    broker.garbage.take_over()


class _Progress:
    """Tells of a recovery that takes long: a line every second."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 1.0

    def show(self, done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0
            print(f"ottla: loading logs, {done} of {total} ({name})", file=sys.stderr, flush=True)


def _age_ms() -> int:
    """How long this process has lived."""
    with open("/proc/self/stat", encoding="ascii") as file:
        started_ticks = int(file.read().rpartition(")")[2].split()[19])
    since_boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    return round((since_boot_s - started_ticks / os.sysconf("SC_CLK_TCK")) * 1000)
