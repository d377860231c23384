"""What the reader gives is what the plain reader gives, however the log was written and however it is cut."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark.making import SCRATCH, MadeLog, Step, options_for, plain_rows, read_all, steps

_sizes = st.sampled_from(("1", "100", "700", "64m"))


@settings(max_examples=120)
@given(steps, _sizes, st.sampled_from((None, "1", "3")), st.booleans())
def test_every_cut_of_a_random_log_gives_the_plain_readers_records(
    steps: Sequence[Step], size: str, max_records: str | None, indexed: bool
) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as root:
        log = MadeLog(Path(root) / "events-3")
        log.write(steps)
        if indexed:
            log.index()
        more = {"maxRecordsPerPartition": max_records} if max_records else {}
        options = options_for(root, includeHeaders="true", targetBytesPerPartition=size, **more)
        assert read_all(options) == [row for _, row in plain_rows(log.directory)]


@settings(max_examples=80)
@given(steps, _sizes, st.sampled_from(["whole", "missing", "old"]))
def test_read_committed_leaves_out_what_was_aborted_or_is_open(
    steps: Sequence[Step], size: str, txn_index: str
) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as root:
        log = MadeLog(Path(root) / "events-0")
        log.write(steps)
        log.index()
        for index in log.directory.glob("*.txnindex"):
            if txn_index == "missing":
                index.unlink()
            elif txn_index == "old":  # as it was some transactions ago
                os.truncate(index, index.stat().st_size // 34 // 2 * 34)
        options = options_for(root, targetBytesPerPartition=size, kafka_isolation_level="read_committed")
        assert read_all(options) == [
            row
            for producer, row in plain_rows(log.directory, headers=False)
            if row["offset"] < log.stable_offset and not log.is_aborted(producer, row["offset"])
        ]
