"""What goes on beside an attack, on a thread of its own, for as long as a block lasts."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Beside(ABC):
    """Runs `work` while the block lasts; what that raises, the end of the block raises."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__)

    @abstractmethod
    def work(self) -> None:
        """Goes on while `goes_on` says so."""

    def goes_on(self, pause_s: float) -> bool:
        """Waits a moment; False when the block has ended."""
        return not self._stop.wait(pause_s)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None and self._error is not None:
            raise AssertionError(f"{type(self).__name__} failed beside the attack") from self._error

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001 - raised again where the block ends
            self._error = error
