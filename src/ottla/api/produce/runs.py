"""Produce requests that wait one behind another on a connection and differ in nothing but their records.

A producer with several requests under way sends such runs. All that a request of one small batch costs, but for its
checks, can be paid once for all of them: one lookup, one write, one high watermark. Only the everyday is done here; a
request about which anything is special (a transaction, an error, a roll of the log, replicas to wait for) is left to
produce.py, and so are those behind it until its turn is over.
"""

from __future__ import annotations

from ottla.api.call import Peer
from ottla.api.produce.gate import check_topic
from ottla.api.produce.responses import answer_template
from ottla.api.services import Services
from ottla.cluster.image import INTERNAL_TOPICS
from ottla.names import TopicPartition
from ottla.protocol import produce_kernel
from ottla.protocol.errors import ErrorCode
from ottla.records import coalesce_kernel, kernel
from ottla.storage.log.batch_run import MAX_BYTES, BatchRun


class Taken:
    """What became of a run: how many requests it had, where the last of them ends, and their answers."""

    __slots__ = ("answers", "count", "stop")

    def __init__(self, count: int, stop: int, answers: bytes) -> None:
        self.count = count
        self.stop = stop
        self.answers = answers


class ProduceRuns:
    """Takes runs out of what connections received, for one loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._run = BatchRun()

    def take(
        self, peer: Peer, received: memoryview, start: int, end: int, max_frame_bytes: int
    ) -> Taken | None:
        """Do the run that begins at `start`, where a frame does; None if there is none."""
        run, services = self._run, self._services
        max_bytes = min(MAX_BYTES, max_frame_bytes)
        found = produce_kernel.read_run(received, start, end, max_bytes, run.places)
        if found is None:
            return None
        count, version, acks, name, topic_id, index = found
        topic, partitions, error = check_topic(services, peer, name, topic_id)
        if error is not ErrorCode.NONE or not 0 <= index < partitions or topic in INTERNAL_TOPICS:
            return None
        run.received = received
        run.count = count
        appends = services.replicas.appends
        # Not TopicPartition(...), as in validation.py.
        key: TopicPartition = tuple.__new__(TopicPartition, (topic, index))
        appended = appends.append_run(key, run, acks)
        run.received = b""
        if appended is None:
            return None
        result, partition, moved = appended
        count = run.count
        stop = run.places[(count - 1) * coalesce_kernel.PLACE + coalesce_kernel.STOP]
        fill, head, middle, tail = answer_template(version, name or "", topic_id, index)
        start_offset, places, rows = result.log_start_offset, run.places, run.rows
        answers = [
            fill(
                head,
                places[number * coalesce_kernel.PLACE + coalesce_kernel.CORRELATION_ID],
                middle,
                rows[number * kernel.ROW + kernel.BASE_OFFSET],
                -1,
                start_offset,
                tail,
            )
            for number in range(count)
        ]
        appends.wake(partition, moved)
        return Taken(count, stop, b"".join(answers))
