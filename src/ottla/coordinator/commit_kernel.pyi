"""The contract of commit_kernel.py."""

def put_commit(
    out: bytearray,
    time_delta: int,
    offset_delta: int,
    key: bytes,
    partition: int,
    offset: int,
    leader_epoch: int,
    metadata: bytes,
    timestamp: int,
    tags: bytes,
) -> None:
    """Append the record of a committed offset, in version 4, to the records of a batch.

    `key` is the record's key but for the partition; `metadata` and `tags` are given as they are written. Numbers must
    fit their fields.
    """
