"""Where the image of a cluster is kept, so that it survives a restart and several brokers can share it."""

from __future__ import annotations

from typing import Protocol

from ottla.cluster.image import ClusterImage
from ottla.cluster.outcome import Command, Outcome

PRODUCER_ID_BLOCK = 1000


class MetadataStore(Protocol):
    """All methods block: they are called on one thread that is not the event loop's, `open` first.

    A failure is a StorageError; the change it belongs to has then not happened.
    """

    def open(self) -> None:
        """Get ready; a store that is not there yet is made."""

    def load(self) -> ClusterImage:
        """The newest image."""

    def update(self, command: Command) -> tuple[ClusterImage, Outcome]:
        """Run `command` on the newest image and keep what it changed, in one step that others see whole or not at
        all. The image returned is the one that is kept, at its revision; on disk when this returns."""

    def revision(self) -> int:
        """The newest revision: another number than that of an image at hand means there is a newer one."""

    def allocate_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> int:
        """The first of `count` ids that nobody has had before."""

    def close(self) -> None: ...
