"""One broker, put together: the only place that knows all parts. Started in order, stopped in reverse.

    socket -> server -> protocol -> api -> replica -> storage -> file
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.api.services import Services
from ottla.cluster.image import BrokerInfo
from ottla.cluster.metadata import Metadata
from ottla.cluster.sqlite import SqliteStore
from ottla.config import BrokerConfig
from ottla.metrics import Metrics
from ottla.protocol.connection import ReceiveBuffers
from ottla.replica.manager import ReplicaManager
from ottla.server.dispatch import Dispatcher
from ottla.server.http import HttpServer
from ottla.server.listener import Listener
from ottla.server.loop import AsyncRuntime
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.storage.log_manager import LogManager, Progress

LAG_TICK_MS = 500

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
    fs: FileSystem = field(default_factory=RealFileSystem)
    make_runtime: Callable[[asyncio.AbstractEventLoop], AsyncRuntime] = AsyncRuntime
    make_dispatcher: Callable[[Services, Callable[[], int]], Dispatcher] = Dispatcher


class Broker:
    """A broker in this process, on the running event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self._stops: list[Callable[[], Awaitable[None]]] = []  # how to undo what has been started, in order
        self._ticker: Timer | None = None
        self.is_ready = False

    async def start(self, on_progress: Progress | None = None) -> None:
        """Everything up: the store, the logs, the partitions, and then the door. What failed leaves nothing open."""
        try:
            await self._start(on_progress)
        except BaseException:
            await self.stop()
            raise

    async def _start(self, on_progress: Progress | None) -> None:
        settings, config = self.settings, self.settings.config
        loop = asyncio.get_running_loop()
        self.runtime = runtime = settings.make_runtime(loop)
        self._stops.append(self._close_runtime)
        store = SqliteStore(settings.store_path, runtime)
        self.metadata = Metadata(store, runtime, config)
        await self._await(self.metadata.open)
        self._stops.append(self._close_metadata)
        self.logs = await loop.run_in_executor(None, self._open_logs, on_progress)
        self.replicas = ReplicaManager(runtime, self.logs, config, config.node_id, self.metrics)
        self._stops.append(self._close_logs)
        await self._await(lambda done: self.metadata.subscribe(self.replicas.apply_image, done))
        services = Services(
            node_id=config.node_id,
            config=config,
            runtime=runtime,
            metadata=self.metadata,
            replicas=self.replicas,
            metrics=self.metrics,
            fetch_sessions=FetchSessionCache(runtime, config.max_incremental_fetch_session_cache_slots),
        )
        await self._open_door(services)
        self._register_gauges(services)
        self._tick(runtime.monotonic_ms())
        self.is_ready = True
