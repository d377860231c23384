"""How much the groups of a broker may be: anybody can make up groups, and commit offsets for them."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol

from ottla.config import BrokerConfig
from ottla.coordinator.offsets.committed import Total
from ottla.errors import CodedError
from ottla.protocol.errors import ErrorCode

# What members say of themselves is kept, written to the log, and told to their leader in one answer.
MAX_MEMBER_BYTES = 1 << 20
MAX_GROUP_BYTES = 16 << 20
MAX_BYTES = 128 << 20  # of all groups
MEMBER_BYTES = 2_000  # what a member takes without any metadata
MAX_NAME = 1_000  # characters of the id of a group, or of what a member is called
_COUNTED_MS = 1_000  # between two exact counts; meanwhile new members are added to the last one


class AnyGroup(Protocol):
    metadata_bytes: int

    @property
    def members(self) -> Sized: ...


class Room:
    """Shared by all shards of the group coordinator."""

    def __init__(self, config: BrokerConfig) -> None:
        self._max_groups = config.max_groups
        self._max_offsets = config.max_committed_offsets
        self.offsets = Total()
        self._shards: list[tuple[Mapping[str, AnyGroup], Mapping[str, AnyGroup]]] = []
        self._bytes = 0  # of the metadata of all members of all groups
        self._counted_ms = -_COUNTED_MS

    def add(self, groups: Mapping[str, AnyGroup], consumer_groups: Mapping[str, AnyGroup]) -> None:
        self._shards.append((groups, consumer_groups))

    def remove(self, groups: Mapping[str, AnyGroup]) -> None:
        self._shards = [shard for shard in self._shards if shard[0] is not groups]

    def check_group(self, group_id: str) -> None:
        """CodedError unless there may be another group, of that name."""
        if len(group_id) > MAX_NAME:
            raise CodedError(ErrorCode.INVALID_GROUP_ID, f"Names have at most {MAX_NAME} characters.")
        count = sum([len(groups) + len(others) for groups, others in self._shards])
        if count >= self._max_groups:
            message = f"The broker has its {self._max_groups} groups (ottla.max.groups)."
            raise CodedError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    def has_bytes(self, group_bytes: int, said_before: int | None, more_bytes: int, now_ms: int) -> bool:
        """Whether a member may say so much where all said `group_bytes` so far, of them it itself `said_before`."""
        if more_bytes > MAX_MEMBER_BYTES or group_bytes - (said_before or 0) + more_bytes > MAX_GROUP_BYTES:
            return False
        if said_before is not None and more_bytes <= said_before:
            return True
        if now_ms - self._counted_ms >= _COUNTED_MS:
            self._counted_ms = now_ms
            self._bytes = sum(
                [_size(group) for shard in self._shards for groups in shard for group in groups.values()]
            )
        if self._bytes + more_bytes > MAX_BYTES:
            return False
        self._bytes += more_bytes + MEMBER_BYTES
        return True

    @property
    def is_full_of_offsets(self) -> bool:
        return self.offsets.weight >= self._max_offsets


def _size(group: AnyGroup) -> int:
    return group.metadata_bytes + MEMBER_BYTES * len(group.members)


def is_long(*names: str | None) -> bool:
    """Whether one of them is longer than a name may be."""
    return any(name is not None and len(name) > MAX_NAME for name in names)
