"""One broker, put together: the only place that knows all parts. Started in order, stopped in reverse.

socket -> server -> protocol -> api -> replica -> storage -> file
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

from ottla.api.fetch_sessions import FetchSessionCache
from ottla.api.services import Services
from ottla.cluster import controller
from ottla.cluster.adopt import check_adopted, check_served_open
from ottla.cluster.image import BrokerInfo, ClusterImage
from ottla.cluster.metadata import Metadata
from ottla.cluster.outcome import Command, Outcome
from ottla.cluster.sqlite import SqliteStore
from ottla.cluster.store import MetadataStore
from ottla.config import BrokerConfig
from ottla.coordinator.groups.coordinator import GroupCoordinator
from ottla.coordinator.transactions.coordinator import TransactionCoordinator
from ottla.coordinator.transactions.verification import Verifier
from ottla.errors import BrokerError, StorageError
from ottla.metrics import Metrics
from ottla.protocol.buffers import MemoryBudget, ReceiveBuffers
from ottla.replica.manager import ReplicaManager
from ottla.runtime import Done, Timer
from ottla.server import gauges, group_lag
from ottla.server.dispatch import Dispatcher
from ottla.server.garbage import Garbage
from ottla.server.http import HttpServer
from ottla.server.listener import Listener
from ottla.server.loop import AsyncRuntime, BrokerRuntime
from ottla.server.nudge import POLL_MS, Nudges
from ottla.server.peers import Peers
from ottla.slices import Slices
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.storage.layout import PID_FILE
from ottla.storage.log_manager import LogManager, Progress
from ottla.storage.recovery import opened_dir

LAG_TICK_MS = 500

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, or where clients are told to come."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a broker is started with."""

    config: BrokerConfig  # its log_dirs say where the partitions lie
    store_path: str  # ottla.db
    listen: Address = Address("127.0.0.1", 9092)
    advertise: Address | None = None  # what clients are told; by default where the broker listens
    http: Address | None = None  # /metrics and /healthz, if anywhere
    http_may_move: bool = False  # to another port, if that one is taken: nobody has asked for it
    shares_store: bool = False  # with other brokers of this machine
    fs: FileSystem = field(default_factory=RealFileSystem)
    make_runtime: Callable[[asyncio.AbstractEventLoop], BrokerRuntime] = AsyncRuntime
    # The store at a path; the cluster's id is for one that is made now.
    make_store: Callable[[str, str], MetadataStore] = SqliteStore
    make_dispatcher: Callable[[Services, Callable[[], int]], Dispatcher] = Dispatcher


class Broker:
    """A broker in this process, on the running event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.halted = asyncio.Event()  # set when the last log directory has gone: nothing is left to serve
        self._stops: list[Callable[[], Awaitable[None]]] = []  # how to undo what was started, in order
        self._ticker: Timer | None = None
        self.http: Address | None = None  # where /metrics is
        self.http_server: HttpServer | None = None
        self.clean_dirs: list[str] = []  # the log directories that were stopped cleanly,
        self.flushed_partitions = 0  # and how many partitions lie in them

    async def start(self, on_progress: Progress | None = None) -> None:
        """Everything up: the store, the logs, the partitions, and then the door. What failed leaves nothing open."""
        try:
            await self._open_store()
            await self._open_logs(on_progress)
            await self._open_door()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the door, flush, mark the clean stop, let go of everything."""
        while self._stops:
            await self._stops.pop()()

    async def _open_store(self) -> None:
        settings, config = self.settings, self.settings.config
        self.runtime = settings.make_runtime(asyncio.get_running_loop())
        self.metrics.turn_duration = self.runtime.watch.duration
        self.metrics.turn_processor = self.runtime.watch.processor
        self.garbage = Garbage(self.metrics.turn_processor)
        self._stops.append(self._close_runtime)
        cluster_id = opened_dir.cluster_id(settings.fs, config.log_dirs, self.runtime)
        _make_data_dir(settings.fs, os.path.dirname(settings.store_path) or ".")
        store = settings.make_store(settings.store_path, cluster_id)
        self.metadata = Metadata(store, self.runtime, config.node_id, config)
        self._stops.append(lambda: _called_back(self.metadata.close))
        opened: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.metadata.open(opened.set_result)
        if (error := await opened) is not None:
            raise error

    async def _open_logs(self, on_progress: Progress | None) -> None:
        config, metadata = self.settings.config, self.metadata
        check_adopted(self.settings.fs, config.log_dirs, metadata.image)
        if not config.serve_open:
            check_served_open(self.settings.fs, os.path.dirname(self.settings.store_path) or ".")
        self.logs = LogManager(
            self.settings.fs,
            self.runtime,
            metadata.broker_config,
            defaults=metadata.topic_config(""),
            topic_configs={name: metadata.topic_config(name) for name in metadata.image.topics},
            node_id=config.node_id,
            cluster_id=metadata.image.cluster_id,
        )
        await self._done_elsewhere(lambda: self.logs.open(on_progress))
        self._tell_losses()
        self.replicas = ReplicaManager(
            self.runtime,
            self.logs,
            metadata.broker_config,
            config.node_id,
            self.metrics,
            config_of=metadata.topic_config,
        )
        self._stops.append(self._close_logs)
        self._write_pid_files()

    def _tell_losses(self) -> None:
        """At every start, until somebody acknowledges them."""
        for notice in self.logs.notices():
            log.warning("%s", notice)
        for path, loss in self.logs.losses():
            log.error(
                "%s: records are lost: %s. Restore them from a backup, or consume on without them; `ottla log losses %s"
                " --acknowledge` ends this message",
                path, loss.describe(), path,
            )  # fmt: skip

    async def _open_door(self) -> None:
        config, settings, shares = self.settings.config, self.settings, self.logs.shares
        peers = Peers(self.metadata, config.request_timeout_ms / 1000)
        self._stops.append(peers.close)
        groups = GroupCoordinator(config, self.metadata, self.replicas, self.runtime)
        transactions = TransactionCoordinator(
            config, self.metadata, self.replicas, self.runtime, groups, peers
        )
        self.services = Services(
            node_id=config.node_id,
            config=config,
            runtime=self.runtime,
            metadata=self.metadata,
            replicas=self.replicas,
            metrics=self.metrics,
            fetch_sessions=FetchSessionCache(self.runtime, config.max_incremental_fetch_session_cache_slots),
            groups=groups,
            transactions=transactions,
            verifier=Verifier(transactions, self.replicas, peers, config.node_id),
            slices=Slices(self.runtime, self.runtime.watch),
            watch=self.runtime.watch,
            max_partitions=shares.partitions if config.max_partitions < 0 else config.max_partitions,
        )
        self.replicas.fetches.slices = self.services.slices
        dispatcher = settings.make_dispatcher(self.services, self.runtime.monotonic_ns)
        limit_bytes = config.queued_max_request_bytes if config.queued_max_request_bytes > 0 else sys.maxsize
        budget = MemoryBudget(limit_bytes, config.socket_request_max_bytes)
        self.replicas.appends.slow.memory = budget
        self.listener = Listener(dispatcher, config, ReceiveBuffers(budget), room=shares.connections)
        await self.listener.bind(settings.listen.host, settings.listen.port)
        self._stops.append(self.listener.stop)
        told = settings.advertise or settings.listen
        self.address = Address(told.host, told.port or self.listener.port)
        await self._join_cluster()
        if settings.http is not None:
            await self._open_http(settings.http)
        gauges.register(self.metrics, self.listener, self.services, self.logs)
        self._tick(self.runtime.monotonic_ms())
        await self.listener.accept()

    async def _join_cluster(self) -> None:
        """Tell the cluster who is here, and lead what it says this broker leads."""
        config = self.settings.config
        info = BrokerInfo(config.node_id, self.address.host, self.address.port, config.broker_rack)
        clean = self.logs.was_clean

        def register(image: ClusterImage) -> Outcome:
            return controller.register_broker(image, info, clean=clean)

        await _change(self.metadata, register)
        self.replicas.apply_image(None, self.metadata.image)
        await _called_back(self.replicas.when_ready)
        self.metadata.subscribe(self._apply_image)
        self.metadata.subscribe(self.services.groups.apply_image)
        self.metadata.subscribe(self.services.transactions.apply_image)
        self.services.groups.follow()
        self.services.transactions.follow()
        if self.settings.shares_store:
            directory = os.path.dirname(self.settings.store_path)
            nudges = Nudges(directory, config.node_id, self.metadata.refresh)
            self._stops.append(nudges.close)
            self.metadata.announce = nudges.send
            self.metadata.start_polling(POLL_MS)
            nudges.send()

    def _apply_image(self, old: ClusterImage, new: ClusterImage, ready: Callable[[], None]) -> None:
        if old.broker_configs is not new.broker_configs:
            self.replicas.configure_broker(self.metadata.broker_config)
        self.replicas.apply_image(old, new)
        self.replicas.when_ready(ready)

    async def _open_http(self, address: Address) -> None:
        http = HttpServer(
            self.metrics, self._health, lambda: group_lag.render(self.services.groups, self.replicas)
        )
        try:
            await http.start(address.host, address.port)
        except OSError as error:
            if not self.settings.http_may_move:
                raise _no_metrics_there(address, error) from None
            log.warning("no /metrics on %s (%s): taking a free port", address, os.strerror(error.errno or 0))
            await http.start(address.host, 0)
        self.http_server = http
        self._stops.append(http.stop)
        self.http = Address(address.host, http.port)

    def _health(self) -> tuple[bool, str]:
        online, configured = len(self.logs.online_dirs), len(self.settings.config.log_dirs)
        healthy = not self.halted.is_set() and online > 0
        troubles = self.logs.troubles
        if healthy and not troubles:
            return True, "ok"
        first = f"ok, but {configured - online} of {configured} log directories are offline"
        if online == configured:
            first = f"ok, but {len(troubles)} of {configured} log directories are full"
        lines = [first if healthy else "no log directory is online"]
        for trouble in troubles:
            lines.append(f"{trouble.path} is {trouble.state}: {trouble.reason}")
            if trouble.partitions:
                lines.append(f"  its partitions: {', '.join(trouble.partitions)}")
        offline = self.replicas.offline_partitions()
        if offline:
            lines.append(f"offline partitions: {', '.join(map(str, offline))}")
        return healthy, "\n".join(lines)

    def _write_pid_files(self) -> None:
        for log_dir in self.logs.online_dirs:
            try:
                _write(self.settings.fs, f"{log_dir.path}/{PID_FILE}", b"%d\n" % os.getpid())
            except OSError as error:
                log.warning("%s/%s could not be written: %s", log_dir.path, PID_FILE, error.strerror)

    def _tick(self, expected_ms: float) -> None:
        """A regular turn of the loop: how late it comes shows what the loop was kept busy with."""
        metrics = self.metrics
        self.garbage.look()
        metrics.loop_lag_ms = max(0.0, self.runtime.monotonic_ms() - expected_ms)
        metrics.loop_lag_max_ms = max(metrics.loop_lag_max_ms, metrics.loop_lag_ms)
        if not self.logs.online_dirs:
            self.halted.set()
        for log_dir in self.logs.full_dirs:
            look = partial(log_dir.look_for_room, self.runtime.monotonic_ms())
            self.runtime.run_blocking(look, lambda _, error: None)
        due_ms = self.runtime.monotonic_ms() + LAG_TICK_MS
        self._ticker = self.runtime.call_later(LAG_TICK_MS, lambda: self._tick(due_ms))

    # -- stopping

    async def _close_logs(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        await _called_back(self.replicas.stop)
        for log_dir in self.logs.online_dirs:
            with contextlib.suppress(FileNotFoundError):
                self.settings.fs.unlink(f"{log_dir.path}/{PID_FILE}")
        partitions = [log.dir.path for log in self.logs.logs.values()]
        self.clean_dirs = await self._done_elsewhere(self.logs.close)
        self.flushed_partitions = sum(path in self.clean_dirs for path in partitions)

    async def _close_runtime(self) -> None:
        await self.runtime.stop()

    async def _done_elsewhere(self, work: Callable[[], T]) -> T:
        """Wait for work that blocks."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.runtime.run_long(work, _told(future))
        return await future


def _make_data_dir(fs: FileSystem, path: str) -> None:
    try:
        fs.make_dir(path)
    except (FileExistsError, NotADirectoryError):
        while not (fs.exists(path) or fs.is_link(path)):
            path = os.path.dirname(path)
        raise StorageError(
            f"{path} is a file, where the data directory was to be; choose another place with --data"
        ) from None
    except OSError as error:
        raise StorageError(f"the data directory {path} cannot be made: {error.strerror}") from error


def _write(fs: FileSystem, path: str, data: bytes) -> None:
    file = fs.open(path, create=True)
    try:
        file.truncate(len(data))
        file.pwrite(data, 0)
    finally:
        file.close()


def _no_metrics_there(address: Address, error: OSError) -> BrokerError:
    why = os.strerror(error.errno) if error.errno else str(error)
    return BrokerError(
        f"/metrics cannot be served on {address}: {why}; stop what listens there, or choose another place with "
        "--http HOST:PORT, or none with --http off"
    )


async def _change(metadata: Metadata, command: Command) -> None:
    """Change the cluster and wait until it is done."""
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    metadata.change(command, _told(future))
    await future


def _told(future: asyncio.Future[T]) -> Done[T]:
    """What passes a result on to who awaits it."""

    def done(result: T | None, error: BaseException | None) -> None:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast(T, result))

    return done


async def _called_back(begin: Callable[[Callable[[], None]], None]) -> None:
    """Wait for something that calls back when it is over."""
    over = asyncio.Event()
    begin(over.set)
    await over.wait()
