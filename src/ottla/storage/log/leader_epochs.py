"""Which leader epoch began at which offset of a partition (`leader-epoch-checkpoint`).

Followers find the point where their log parts from the leader's by asking for the end offset of an epoch. Epochs and
start offsets both grow from entry to entry; an epoch that wrote nothing has no entry.
"""

from __future__ import annotations

from ottla.storage import checkpoint
from ottla.storage.fs import FileSystem

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """The epochs of one partition, in memory and in their file."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self._path = path
        self._entries: list[tuple[int, int]] = checkpoint.read_epochs(fs, path)
        self.latest_epoch = self._entries[-1][0] if self._entries else UNDEFINED_EPOCH
        self.is_behind = False  # the file has not what is known here: there was no room

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`, if that is news."""
        before = self._entries
        if self.note(epoch, start_offset):
            try:
                self.write()
            except OSError:
                self._set(before)
                raise

    def note(self, epoch: int, start_offset: int) -> bool:
        """As `assign`, but in memory only; True if anything changed. For rebuilding many at once."""
        if epoch < 0 or (
            self._entries and epoch == self._entries[-1][0] and start_offset >= self._entries[-1][1]
        ):
            return False
        # A log that was truncated and written again may begin a known epoch, or a lower offset, anew.
        kept = [entry for entry in self._entries if entry[0] < epoch and entry[1] < start_offset]
        self._set([*kept, (epoch, start_offset)])
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """As the function of this name, for the epochs of this log."""
        return end_offset_for(self._entries, epoch, log_end_offset)

    def epoch_for(self, offset: int) -> int:
        """The epoch that wrote `offset`, or -1."""
        return next((epoch for epoch, start in reversed(self._entries) if start <= offset), UNDEFINED_EPOCH)

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`."""
        kept = [entry for entry in self._entries if entry[1] < end_offset]
        if len(kept) < len(self._entries):
            self._set(kept)
            self.write()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before `start_offset`; the one that holds it now begins there."""
        holding = sum(1 for entry in self._entries if entry[1] <= start_offset) - 1
        if holding >= 0 and (holding > 0 or self._entries[0][1] < start_offset):
            self._set([(self._entries[holding][0], start_offset), *self._entries[holding + 1 :]])
            self.write()

    def clear(self) -> None:
        if self._entries:
            self._set([])
            self.write()

    def write(self) -> None:
        self.is_behind = True
        checkpoint.write_epochs(self._fs, self._path, self._entries)
        self.is_behind = False

    def _set(self, entries: list[tuple[int, int]]) -> None:
        self._entries = entries
        self.latest_epoch = entries[-1][0] if entries else UNDEFINED_EPOCH


def end_offset_for(entries: list[tuple[int, int]], epoch: int, log_end_offset: int) -> tuple[int, int]:
    """(epoch, end offset): the largest epoch at or below the one asked for, and where the next one begins."""
    if epoch == UNDEFINED_EPOCH or not entries or epoch > entries[-1][0]:
        return UNDEFINED_EPOCH, UNDEFINED_OFFSET
    if epoch == entries[-1][0]:
        return epoch, log_end_offset
    higher = next(i for i, entry in enumerate(entries) if entry[0] > epoch)
    if higher == 0:
        return epoch, entries[0][1]
    return entries[higher - 1][0], entries[higher][1]
