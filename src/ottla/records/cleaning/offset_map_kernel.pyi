"""Types and contracts of the cleaner's map; offset_map_kernel.py says how it works.

`rows`, `shift`, `actions` and the reasons why a loop ended are those of compact_kernel.pyi.
"""

from array import array

from typing_extensions import Buffer

class OffsetMap:
    """The last offset of each key. Grows from 96 KiB up to `max_bytes`, 24 bytes a slot."""

    def __init__(self, max_bytes: int, load_factor: float, key0: int, key1: int) -> None: ...
    @property
    def entries(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def get(self, key: Buffer) -> int:
        """The last offset of the key, or -1."""

    def put_rows(
        self,
        data: Buffer,
        shift: int,
        rows: array[int],
        start: int,
        count: int,
        actions: Buffer,
        first_offset: int,
    ) -> tuple[int, int]:
        """Enter the keys of records from `first_offset` on: (row reached, why). Must go in the order of offsets."""
