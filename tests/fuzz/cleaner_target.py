"""The cleaner's loops on damaged batches: they stop with a reason, and never write past what they were given."""

from __future__ import annotations

from ottla.records import kernel
from ottla.records.cleaning import compact_kernel
from ottla.records.cleaning.offset_map_kernel import OffsetMap
from tests.fuzz.kernel_calls import numbers
from tests.fuzz.kernel_target import exact_buffer, make_input

_REASONS = (
    compact_kernel.DONE,
    compact_kernel.PACKED,
    compact_kernel.FULL,
    compact_kernel.NO_ROOM,
    compact_kernel.BAD,
)
# One map for all inputs: it takes 1.5 MB, and a full one is a case too.
_map = OffsetMap(3 << 19, 0.9, 1, 2)


def check(seed: int, number: int) -> None:
    log, random = make_input(seed, number)
    data, rows = exact_buffer(log), numbers(kernel.ROW * 5)
    # Without checks the rows are those of batches whose records may be anything.
    count = kernel.scan(data, 0, len(log), rows, random.choice((0, kernel.CHECK_CRC)))[0]
    keep = numbers(count)
    assert compact_kernel.special_rows(rows, count, numbers(random.randrange(3)), keep) <= count
    actions = exact_buffer(bytes(random.choices((0, 0, 0, 1, 2, 3, 4, 5), k=count)))
    reached, why = _map.put_rows(data, 0, rows, 0, count, actions, random.choice((0, 5)))
    assert 0 <= reached <= count
    assert why in _REASONS
    out = exact_buffer(bytes(random.choice((0, 60, len(log), len(log) + 40, 2 * len(log) + 200))))
    latest, horizon = random.choice((-1, 3, 2**62)), random.choice((500, 2**62))
    to = random.randint(0, len(out))
    result = compact_kernel.filter_rows(
        _map, data, 0, rows, 0, count, actions, latest, 1000, horizon, out, to
    )
    assert 0 <= result[0] <= count
    assert to <= result[1] <= len(out)
    assert result[2] in _REASONS
