"""Makes damaged copies of small data directories: bits, lengths, offsets, epochs, side files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from ottla.errors import CorruptionError
from ottla.names import TopicPartition
from ottla.records import batch
from ottla.records.record import read_batches
from tests import corpus
from tests.logtools.making import fill, open_manager


def make_healthy(path: Path, partitions: int = 3) -> Path:
    """A data directory after a clean stop, with several segments in each partition."""
    path.mkdir(parents=True)
    manager = open_manager(path)
    for number in range(partitions):
        fill(manager.get_or_create(TopicPartition("orders", number)))
    manager.close()
    return path


def make(root: Path, *, seed: int) -> list[Path]:
    """Ottla's and Kafka's data directory, with some partitions healthy and the others damaged."""
    rng = Random(f"damaged {seed}")
    made = make_healthy(root / "made", partitions=10)
    for number in range(9):
        for _ in range(rng.randint(1, 4)):
            rng.choice(_DAMAGES)(made / f"orders-{number}", rng)
    killed = corpus.unpack("kafka-4.2.0-killed", root)
    for _ in range(12):
        rng.choice(_DAMAGES)(killed, rng)
    for directory in (made, killed):
        _flip(directory, rng, "*checkpoint")
    return [made, killed]


def _pick(directory: Path, rng: Random, pattern: str) -> Path | None:
    found = sorted(path for path in directory.rglob(pattern) if path.is_file() and path.stat().st_size)
    return rng.choice(found) if found else None


_PATTERNS = ["*.log", "*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot", "*checkpoint"]


def _flip(directory: Path, rng: Random, pattern: str | None = None) -> None:
    path = _pick(directory, rng, pattern or rng.choice(_PATTERNS))
    if path is not None:
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)


def _cut(directory: Path, rng: Random) -> None:
    path = _pick(directory, rng, "*.log")
    assert path is not None
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def _lose(directory: Path, rng: Random) -> None:
    path = _pick(directory, rng, rng.choice(["*.index", "*.log", "*.snapshot", "leader-epoch-checkpoint"]))
    if path is not None:
        path.unlink()


def _renumber(directory: Path, rng: Random) -> None:
    """Base offsets and leader epochs, which no CRC covers."""
    path = _pick(directory, rng, "*.log")
    assert path is not None
    data = bytearray(path.read_bytes())
    found: list[Any] = []
    with suppress(CorruptionError):  # of an earlier damage
        found.extend(read_batches(bytes(data)))
    for position, header in rng.sample(found, min(len(found), rng.choice([1, 3, 20]))):
        if header.magic != batch.MAGIC_V2:
            continue
        offset, epoch = rng.choice([(0, 1), (3, 0), (-1, 0), (0, -1)])
        batch.patch_offsets(data, position, header.base_offset + offset, header.leader_epoch + epoch)
    path.write_bytes(data)


_DAMAGES: list[Callable[[Path, Random], None]] = [_flip, _flip, _cut, _lose, _renumber, _renumber]
