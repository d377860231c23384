"""Produce below the api floor: append to each partition, raise high watermarks, wake who waits, answer or wait.

The loop appends what is quickly checked. From the first batch of a request that is not, or when its batches together
have taken a few milliseconds, the rest goes the way of slow_appends.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.errors import InvalidRequiredAcksError
from ottla.metrics import Metrics
from ottla.names import Bytes, TopicPartition
from ottla.replica.append_request import Appended, AppendRequest, success, wake
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.partition import ALL_REPLICAS, Partition
from ottla.replica.results import AppendResult
from ottla.replica.slow_appends import SlowAppend, SlowAppends
from ottla.replica.waits import DelayedProduce, Purgatories
from ottla.runtime import LoopRuntime
from ottla.storage.log.batch_run import BatchRun
from ottla.storage.log.validation import Origin, TakesLongError, Validated, is_packed, validate

VALID_ACKS: Final = (-1, 0, 1)
_AT_ONCE: Final = (ALL_REPLICAS, 1)  # acks that are answered
_CLIENT: Final = Origin.CLIENT
_LOOP_BYTES: Final = 1 << 20  # that may be unpacked on the loop for one batch: one to three milliseconds
_LOOP_MS: Final = 3  # for all batches of a request

Entries = Sequence[tuple[TopicPartition, Bytes]]
Lent = list[tuple[int, Partition, Bytes, Validated | None]]


class Appends:
    """The way of records into the logs of this broker."""

    def __init__(
        self,
        runtime: LoopRuntime,
        hosted: Hosted,
        purgatories: Purgatories,
        lanes: Lanes,
        metrics: Metrics,
    ) -> None:
        self._runtime = runtime
        self._partitions = hosted.partitions
        self._hosted = hosted
        self._purgatories = purgatories
        self._lanes = lanes
        self._metrics = metrics
        self.slow = SlowAppends(hosted, runtime, lanes)
        self._queued = self.slow.queues

    def append(
        self,
        *,
        acks: int,
        timeout_ms: int,
        entries: Entries,
        done: Appended,
        origin: Origin = _CLIENT,
        owner: object = None,
    ) -> DelayedProduce | None:
        """Append each entry and call `done` with a result for each: at once, unless something must be waited for.

        Requests of one `owner` keep their order. A wait for replicas is returned, so that it can be cancelled when its
        client goes. A wait for this broker's own disk ends by itself.
        """
        if acks not in VALID_ACKS:
            done([AppendResult(key, InvalidRequiredAcksError.code) for key, _ in entries])
            return None
        count = len(entries)
        request = AppendRequest(self._purgatories, self._metrics, acks, timeout_ms, origin, done, count)
        lent: Lent = []
        tried = 0 if owner in self._queued else self._append_quick(request, entries, lent)
        if tried < count:
            places = [*(place for place, _, _, _ in lent), *range(tried, count)]
            rest = [(place, *entries[place]) for place in places]
            self.slow.add(owner, SlowAppend(self.slow, request, rest))
            return None
        if lent:
            request.wait_for_lanes(len(lent))
            for place, partition, records, checked in lent:
                request.append_on_lane(self._lanes, place, partition, records, checked, request.one_lane_done)
            return None
        return request.finish()

    def _append_quick(self, request: AppendRequest, entries: Entries, lent: Lent) -> int:
        """Append what the loop has time for, and put into `lent` what must be appended elsewhere: how many entries
        that is."""
        acks, origin = request.acks, request.origin
        until_ms = self._runtime.monotonic_ms() + _LOOP_MS if len(entries) > 1 else 0
        for place, (key, records) in enumerate(entries):
            if until_ms and self._runtime.monotonic_ms() > until_ms:
                return place
            partition = self._partitions.get(key)
            try:
                if partition is None:
                    raise self._hosted.missing(key)
                if partition.goes_by_lane:
                    # What could take long on the lane, where others wait too, is seen here.
                    checked = self._check(partition, records, origin) if is_packed(records) else None
                    lent.append((place, partition, records, checked))
                    continue
                info, moved = partition.append(records, acks, origin, _LOOP_BYTES)
            except TakesLongError:
                return place
            except Exception as error:  # noqa: BLE001 - one partition's trouble is no other's
                request.failed(place, key, partition, len(records), error)
            else:
                request.succeeded(place, partition, info, moved, len(records))
        return len(entries)

    def _check(self, partition: Partition, records: Bytes, origin: Origin) -> Validated:
        config = partition.leader_log().config
        now_ms = self._runtime.now_ms()
        return validate(bytearray(records), 0, partition.leader_epoch, config, now_ms, origin, _LOOP_BYTES)

    def append_run(
        self, key: TopicPartition, run: BatchRun, acks: int
    ) -> tuple[AppendResult, Partition, bool] | None:
        """Append as many batches of a run as nothing has to be waited for or said about; None if that is none.

        The result is that of the first of them; `run.count` says how many there are. `wake` comes next, once the run
        is not needed any more: those who wake may bring runs of their own.
        """
        partition = self._partitions.get(key)
        appended = partition.append_run(run, acks) if partition is not None and acks in _AT_ONCE else None
        if partition is None or appended is None:
            return None
        info, moved = appended
        partition.metrics.produce_requests += run.count - 1
        return success(partition, info, info.size_bytes), partition, moved

    def wake(self, partition: Partition, moved: bool) -> None:
        wake(self._purgatories, partition, moved)
