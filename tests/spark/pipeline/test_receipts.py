"""Receipts: what a batch's own tasks wrote is read, and nothing that somebody else put there is unpickled."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from ottla.errors import PipelineError
from ottla.spark.pipeline.receipts import Receipts
from ottla.spark.pipeline.tasks import TaskResult


class Trap:
    """Runs code when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return Path.touch, (self.path,)  # type: ignore[return-value]


def test_one_receipt_of_each_split_comes_back_also_from_tasks_that_were_tried_again(tmp_path: Path) -> None:
    receipts = Receipts(str(tmp_path / "receipts"))
    for index, read in ((0, 5), (1, 7), (1, 7)):
        pickle.loads(pickle.dumps(receipts)).leave(index, TaskResult(read=read))
    assert sorted(receipt.read for receipt in receipts.read()) == [5, 7]
    receipts.remove()
    assert receipts.read() == []


@pytest.mark.parametrize("seal", [b"", bytes(32), b"x" * 32])
def test_a_file_that_somebody_else_put_there_is_refused_and_not_unpickled(
    tmp_path: Path, seal: bytes
) -> None:
    receipts = Receipts(str(tmp_path))
    trapped = tmp_path / "sprung"
    (tmp_path / "0-stranger.receipt").write_bytes(seal + pickle.dumps(Trap(trapped)))
    with pytest.raises(PipelineError, match="not written by a task of this batch"):
        receipts.read()
    assert not trapped.exists()


def test_a_receipt_of_another_batch_is_refused(tmp_path: Path) -> None:
    Receipts(str(tmp_path)).leave(0, TaskResult(read=5))
    with pytest.raises(PipelineError):
        Receipts(str(tmp_path)).read()
