"""Types and contracts of what reads records for the cleaner; ahead_kernel.py says how it works."""

from typing_extensions import Buffer

def siphash(data: Buffer, key0: int, key1: int) -> tuple[int, int]:
    """SipHash-2-4 with 128 bits of output: the low and the high half."""
