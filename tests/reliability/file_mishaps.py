"""What may happen to the files of a broker that is not running: each mishap does one thing to one of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

NAMES = ("plain-0", "plain-1", "trimmed-0", "compacted-0")
SIDE_FILES = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata")
CHECKPOINTS = (
    "recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint", ".kafka_cleanshutdown",
)  # fmt: skip


class Mishap:
    """Does one thing to the files of a data directory."""

    def __init__(self, data: Path, rng: Random) -> None:
        self._data = data
        self._rng = rng
        self.told = ""
        self.exchanged: tuple[str, ...] = ()  # partitions whose directories were exchanged

    def happen(self) -> None:
        actions = (
            (self._segment, 10),
            (self._side_file, 4),
            (self._checkpoint, 2),
            (self._directory, 4),
        )
        action = self._rng.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
        action()

    def _segment(self) -> None:
        log_dir = self._data / self._rng.choice(NAMES)
        logs = sorted(log_dir.glob("*.log"))
        log = self._rng.choice(logs)
        kinds = (
            "zero",
            "zero a part",
            "cut",
            "delete",
            "delete all",
            "rename",
            "rename all",
            "copy",
            "exchange",
        )
        kind = self._rng.choice([kind for kind in kinds if self._is_seen(log_dir.name, kind)])
        self.told = f"{kind} {log_dir.name}/{log.name}"
        if kind in ("zero", "zero a part", "cut"):
            self._damage(log, kind)
        elif kind == "exchange":
            other = self._rng.choice(logs)
            self.told += f" and {other.name}"
            self._exchange(log, other)
        else:
            self._move(log, kind)

    @staticmethod
    def _is_seen(partition: str, kind: str) -> bool:
        """A whole segment that is gone from a compacted log looks as if it had been compacted away."""
        return not partition.startswith("compacted") or kind in ("zero", "copy")

    def _move(self, log: Path, kind: str) -> None:
        files = [log, *log.parent.glob(f"{log.stem}.*")] if kind.endswith("all") else [log]
        if kind.startswith("delete"):
            for file in files:
                file.unlink(missing_ok=True)
            return
        base = self._rng.choice([int(log.stem) + self._rng.randrange(1, 40), self._rng.randrange(100_000)])
        self.told += f" to {base}"
        if (log.parent / f"{base:020d}.log").exists():
            self.told = "nothing"
            return
        for file in {*files}:
            target = file.with_name(f"{base:020d}{file.suffix}")
            if kind == "copy":
                shutil.copyfile(file, target)
            else:
                file.rename(target)

    def _side_file(self) -> None:
        log_dir = self._data / self._rng.choice(NAMES)
        files = [file for file in sorted(log_dir.iterdir()) if file.name.endswith(SIDE_FILES)]
        file = self._rng.choice(files)
        kind = self._rng.choice(("zero", "zero a part", "cut", "delete", "copy", "exchange"))
        self.told = f"{kind} {log_dir.name}/{file.name}"
        if kind in ("zero", "zero a part", "cut"):
            self._damage(file, kind)
        elif kind == "delete":
            file.unlink()
        elif kind == "copy":
            shutil.copyfile(file, file.with_name(f"{self._rng.randrange(100_000):020d}{file.suffix}"))
        else:
            same = [other for other in files if other.suffix == file.suffix]
            self._exchange(file, self._rng.choice(same))

    def _checkpoint(self) -> None:
        files = [file for name in CHECKPOINTS if (file := self._data / name).exists()]
        file = self._rng.choice(files)
        kind = self._rng.choice(("zero", "zero a part", "cut", "delete"))
        self.told = f"{kind} {file.name}"
        if kind == "delete":
            file.unlink()
        else:
            self._damage(file, kind)

    def _directory(self) -> None:
        log_dir = self._data / self._rng.choice(NAMES)
        kind = self._rng.choice(("delete", "empty", "rename", "exchange", "copy", "zero"))
        self.told = f"{kind} {log_dir.name}"
        if kind == "delete":
            shutil.rmtree(log_dir)
        elif kind == "empty":
            for file in log_dir.iterdir():
                file.unlink()
        elif kind == "zero":
            for file in log_dir.iterdir():
                file.write_bytes(bytes(file.stat().st_size))
        elif kind == "rename":
            log_dir.rename(self._data / f"{log_dir.name.rpartition('-')[0]}-77")
        elif kind == "copy":
            shutil.copytree(log_dir, self._data / f"{log_dir.name.rpartition('-')[0]}-77")
        else:
            self.told, self.exchanged = "exchange plain-0 and plain-1", ("plain-0", "plain-1")
            self._exchange(self._data / "plain-0", self._data / "plain-1")

    def _damage(self, file: Path, kind: str) -> None:
        data = bytearray(file.read_bytes())
        at = self._rng.randrange(len(data)) if data else 0
        if kind == "cut":
            del data[at:]
        elif kind == "zero":
            data = bytearray(len(data))
        else:
            size = min(self._rng.randrange(1, 600), len(data) - at)
            data[at : at + size] = bytes(size)
        file.write_bytes(data)

    @staticmethod
    def _exchange(one: Path, other: Path) -> None:
        if one != other:
            aside = one.with_name("aside")
            one.rename(aside)
            other.rename(one)
            aside.rename(other)
