"""What the tasks of a batch tell its driver through files: how much they read, and which rows were bad.

The files lie in a table's directory, where others may be able to write, and what is unpickled can run code. So each is
sealed with a secret that only the driver and the tasks of this batch have.
"""

from __future__ import annotations

import hmac
import os
import pickle
import secrets
import shutil
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from ottla.errors import PipelineError
from ottla.spark.pipeline.tasks import TaskResult

_SEAL_BYTES = 32
_SUFFIX = ".receipt"


def _new_secret() -> bytes:
    return secrets.token_bytes(_SEAL_BYTES)


@dataclass(frozen=True)
class Receipts:
    """The receipts of one batch."""

    directory: str
    _secret: bytes = field(default_factory=_new_secret, repr=False)

    def leave(self, index: int, receipt: TaskResult) -> None:
        """By the task of a split; one that is tried again leaves another."""
        os.makedirs(self.directory, exist_ok=True)
        name = os.path.join(self.directory, f"{index}-{uuid.uuid4().hex}")
        data = pickle.dumps(receipt)
        with open(f"{name}.tmp", "wb") as file:
            file.write(self._seal(data) + data)
        Path(f"{name}.tmp").replace(f"{name}{_SUFFIX}")

    def read(self) -> list[TaskResult]:
        """By the driver: one of each split."""
        names = sorted(os.listdir(self.directory)) if Path(self.directory).is_dir() else []
        chosen = {name.partition("-")[0]: name for name in names if name.endswith(_SUFFIX)}
        return [self._open(os.path.join(self.directory, name)) for name in chosen.values()]

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def _open(self, path: str) -> TaskResult:
        with open(path, "rb") as file:
            seal, data = file.read(_SEAL_BYTES), file.read()
        if not hmac.compare_digest(seal, self._seal(data)):
            raise PipelineError(f"{path} was not written by a task of this batch; who else may write there?")
        receipt: TaskResult = pickle.loads(data)
        return receipt

    def _seal(self, data: bytes) -> bytes:
        return hmac.digest(self._secret, data, "sha256")
