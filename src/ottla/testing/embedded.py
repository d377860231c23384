"""A broker inside this process, for tests: on its own thread and event loop, its own port, its own data.

    with EmbeddedBroker({"num.partitions": "3"}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It is the same broker that `ottla serve` runs. What is added lies around it: a clock that can be moved, faults in its
answers, and a way to be killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

import uvloop

from ottla.api.services import Services
from ottla.broker import Address, Broker, Settings
from ottla.cluster import controller
from ottla.cluster.image import ClusterImage
from ottla.cluster.outcome import Command, Outcome
from ottla.cluster.sqlite import DB_FILE
from ottla.config import BrokerConfig, check_known
from ottla.errors import BrokerError
from ottla.server.dispatch import Dispatcher
from ottla.storage.fs import FileSystem
from ottla.testing.clock import Clock, ShiftedRuntime, ShiftedTime
from ottla.testing.mortal_files import KilledError, MortalFileSystem
from ottla.testing.request_faults import Faults, faulty_dispatcher

T = TypeVar("T")

HOST = "127.0.0.1"
_MEMORY_DIR = "/dev/shm"
_ENOUGH_BYTES = 1 << 30  # a container often has no more than 64 MiB there


class EmbeddedBroker:
    """One broker for tests. It keeps its port and its data from the first start to `close`.

    properties: a broker's settings by Kafka's names, as in server.properties; a name that neither Kafka nor ottla has
        is a ConfigError
    data: where it keeps its topics; if not given, a temporary directory that goes with it (in memory, where there
        is room: the disk's syncs are most of a start)
    http: whether `/metrics` and `/healthz` are served too, at the address `broker.http`
    wrap_files: what to put between the broker and its files, such as `SlowFileSystem`
    """

    def __init__(
        self,
        properties: Mapping[str, object] | None = None,
        data: str | os.PathLike[str] | None = None,
        *,
        http: bool = False,
        wrap_files: Callable[[FileSystem], FileSystem] | None = None,
    ) -> None:
        self._wrap_files = wrap_files
        self.properties = {key: _text(value) for key, value in (properties or {}).items()}
        check_known(self.properties)
        self._has_http = http
        self._is_temporary = data is None
        self.data = _temporary_dir() if data is None else os.fspath(data)
        self.faults = Faults()
        self._time = ShiftedTime()
        self.clock = Clock(self._time, self._time_moved)
        self._place = _held_port()
        self.port: int = self._place.getsockname()[1]
        self.bootstrap = f"{HOST}:{self.port}"
        self._broker: Broker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.restarts = 0

    # -- life

    def __enter__(self) -> EmbeddedBroker:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        return self._broker is not None

    def start(self) -> EmbeddedBroker:
        """Start it and wait until it takes connections."""
        if self._broker is not None:
            raise RuntimeError(f"the broker on {self.bootstrap} is running already")
        self._fs = MortalFileSystem()
        self._loop = uvloop.new_event_loop()
        self._loop.set_exception_handler(_report)
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"ottla-{self.port}", daemon=True)
        self._thread.start()
        try:
            self._broker = self._wait(self._start())
        except BaseException:
            self._end_loop()
            raise
        return self

    async def _start(self) -> Broker:
        broker = Broker(self._settings())
        await broker.start()
        return broker

    def _settings(self) -> Settings:
        properties = {"log.dirs": self.data, "group.initial.rebalance.delay.ms": "0", **self.properties}
        return Settings(
            BrokerConfig.from_properties(properties),
            os.path.join(self.data, DB_FILE),
            Address(HOST, self.port),
            http=Address(HOST, 0) if self._has_http else None,
            fs=self._wrap_files(self._fs) if self._wrap_files else self._fs,
            make_runtime=partial(ShiftedRuntime, shifted=self._time),
            make_dispatcher=self._make_dispatcher,
        )

    def _make_dispatcher(self, services: Services, clock_ns: Callable[[], int]) -> Dispatcher:
        return faulty_dispatcher(services, clock_ns, self.faults)

    def stop(self) -> None:
        """Stop it as SIGTERM does: flushed, marked as cleanly stopped. `start` goes on with the same data."""
        broker, self._broker = self._broker, None
        if broker is not None:
            self._wait(broker.stop())
            self._end_loop()

    def kill(self) -> None:
        """End it as `kill -9` does: no flush, no marker, connections broken off.

        What had been written lies in the files, as the page cache keeps it when a process dies; what was on its
        way to them is lost. `start` recovers.
        """
        broker, self._broker = self._broker, None
        if broker is not None:
            self._wait(self._kill(broker))
            self._end_loop()

    async def _kill(self, broker: Broker) -> None:
        self._fs.die()
        broker.listener.abort()
        if broker.http_server is not None:
            await broker.http_server.stop()
        closed = asyncio.Event()
        # A transaction of SQLite is there whole or not at all, whether the file is closed or not.
        broker.metadata.close(closed.set)
        await closed.wait()
        await broker.runtime.stop()
        broker.logs.abandon()

    def restart(self) -> None:
        """Stop, if it runs, and start again with the same data and port."""
        self.stop()
        self.restarts += 1
        self.start()

    def close(self) -> None:
        """Stop, and remove temporary data."""
        try:
            self.stop()
        finally:
            self._place.close()
            if self._is_temporary:
                shutil.rmtree(self.data, ignore_errors=True)

    # -- topics

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Make a topic; it can be used when this returns. Errors are those of Kafka, as `ottla.errors`."""
        settings = {key: _text(value) for key, value in (config or {}).items()}
        new = controller.NewTopic(name, partitions, config=settings)
        broker = self.broker
        randrange = broker.runtime.randrange

        def create(image: ClusterImage) -> Outcome:
            return controller.create_topics(image, [new], broker.metadata.broker_config, randrange)

        self._change(create)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        doomed = controller.DoomedTopic(name)
        config = self.broker.metadata.broker_config
        self._change(lambda image: controller.delete_topics(image, [doomed], config))

    def topics(self) -> list[str]:
        """The names of all topics."""
        return sorted(self.broker.metadata.image.topics)

    def _change(self, command: Command) -> None:
        outcome = self._wait(_changed(self.broker, command))
        for result in outcome.results:
            if not result.ok:
                raise _error(result.error_code, result.error_message)

    # -- the inside

    @property
    def broker(self) -> Broker:
        """The broker itself, for tests that look inside. Its state belongs to its loop: see `call`."""
        if self._broker is None:
            raise RuntimeError(f"the broker on {self.bootstrap} is not running")
        return self._broker

    def call(self, work: Callable[[], T]) -> T:
        """Run something on the broker's own thread, and return its result."""

        async def on_loop() -> T:
            return work()

        return self._wait(on_loop())

    def worst_turn_ms(self) -> float:
        """The most processor time that one turn of its loop took since this was last asked: so long, on an idle
        machine, another client may have waited."""

        def take() -> float:
            times = self.broker.metrics.turn_processor
            worst_ns, times.longest_ns = times.longest_ns, 0
            return worst_ns / 1e6

        self.call(self.broker.runtime.watch.close)
        return self.call(take)

    def _time_moved(self) -> None:
        runtime = self.broker.runtime
        assert isinstance(runtime, ShiftedRuntime)
        self._wait(runtime.moved())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._thread
        assert loop is not None
        assert thread is not None
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._loop = self._thread = None


def _temporary_dir() -> str:
    in_memory = os.access(_MEMORY_DIR, os.W_OK) and shutil.disk_usage(_MEMORY_DIR).free >= _ENOUGH_BYTES
    return tempfile.mkdtemp(prefix="ottla-", dir=_MEMORY_DIR if in_memory else None)


def _held_port() -> socket.socket:
    """A free port that stays taken while the broker is down, so that it comes back where its clients look for it."""
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the broker's own socket will share it
    place.bind((HOST, 0))
    return place


async def _changed(broker: Broker, command: Command) -> Outcome:
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def done(outcome: Outcome | None, error: BaseException | None) -> None:
        if outcome is None:
            future.set_exception(error or RuntimeError("a change of the cluster was lost"))
        else:
            future.set_result(outcome)

    broker.metadata.change(command, done)
    return await future


def _error(code: int, message: str | None) -> BrokerError:
    error = BrokerError(message or "")
    error.code = code
    return error


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), KilledError):
        loop.default_exception_handler(context)


def _text(value: object) -> str:
    """A setting as a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
