"""How far the tasks of a session are, told while they run: on a classic session and through Spark Connect."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_PAUSE_S = 0.2

Tell = Callable[[int, int], None]  # tasks done, and of how many


@contextmanager
def watched_tasks(session: SparkSession, tell: Tell) -> Iterator[None]:
    """Tells of the stages that run at present, again and again."""
    if _is_connected(session):
        with _handled(session, tell):
            yield
        return
    ended = threading.Event()
    tracker = session.sparkContext.statusTracker()

    def look() -> None:
        while not ended.wait(_PAUSE_S):
            try:
                found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except (Py4JError, OSError):  # its Java is gone; the work itself says so
                return
            stages = [stage for stage in found if stage is not None]
            if stages:
                tell(sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))

    watcher = threading.Thread(target=look, name="task progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _is_connected(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


@contextmanager
def _handled(session: Any, tell: Tell) -> Iterator[None]:
    def handle(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        running = [stage for stage in stages or () if not stage.done]
        if running:
            tell(sum(s.num_completed_tasks for s in running), sum(s.num_tasks for s in running))

    session.registerProgressHandler(handle)
    try:
        yield
    finally:
        session.removeProgressHandler(handle)
