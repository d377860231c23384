"""Records packed out of Arrow columns with timestamps of their own."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records.batch import HEADER_SIZE
from ottla.records.builder import seal_batch
from ottla.records.columnar.pack_kernel import Packer
from ottla.records.compression.codec import Codec
from ottla.records.record import read_records

TIMES = st.lists(st.integers(0, 2**61), min_size=1, max_size=50)


def column(cells: list[bytes]) -> tuple[None, array[int], bytes]:
    ends = array("i", [0])
    for cell in cells:
        ends.append(ends[-1] + len(cell))
    return None, ends, b"".join(cells) or b"\0"


@settings(max_examples=60)
@given(times=TIMES, codec=st.sampled_from(list(Codec)))
def test_every_record_has_the_time_of_its_row(times: list[int], codec: Codec) -> None:
    values = column([b"v%d" % number for number in range(len(times))])
    packer = Packer(values, values, None, array("q", times))
    order = array("i", reversed(range(len(times))))
    data = bytearray(HEADER_SIZE)
    assert packer.pack(data, 0, order, 0, len(times), 1 << 20, times[-1]) == len(times)
    latest = packer.latest_time(order, 0, len(times))
    seal_batch(data, len(times), times[-1], codec=codec, latest_time=latest)
    found = [(record.timestamp, record.value) for record in read_records(data)]
    assert found == [(times[row], b"v%d" % row) for row in reversed(range(len(times)))]
    assert latest == max(times)
