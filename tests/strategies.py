"""Hypothesis strategies for records."""

from __future__ import annotations

from hypothesis import strategies as st

from ottla.records.builder import NewRecord

fields = st.none() | st.binary(max_size=200)
header_pairs = st.lists(st.tuples(st.binary(max_size=20), st.none() | st.binary(max_size=80)), max_size=3)
# Differences of these fit into 64 bits, and some take ten bytes as a varint.
timestamps = st.integers(-1, 2**62) | st.integers(1_000, 5_000)
records = st.builds(NewRecord, timestamps, fields, fields, header_pairs)
record_lists = st.lists(records, min_size=1, max_size=8)


def damaged(data: bytes, draw: st.DataObject) -> bytes:
    """Some bytes changed, and perhaps the end cut off."""
    changed = bytearray(data)
    for position, value in draw.draw(
        st.dictionaries(st.integers(0, 200), st.integers(0, 255), max_size=4)
    ).items():
        if position < len(changed):
            changed[position] = value
    return bytes(changed[: draw.draw(st.integers(0, 200) | st.just(10_000))])
