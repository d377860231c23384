"""How much the groups of a broker may be: anybody can make up groups, and commit offsets for them."""

from __future__ import annotations

from collections.abc import Sized

from ottla.config import BrokerConfig
from ottla.coordinator.group_offsets import Total
from ottla.errors import CodedError
from ottla.protocol.errors import ErrorCode


class Room:
    """Shared by all shards of the group coordinator."""

    def __init__(self, config: BrokerConfig) -> None:
        self._max_groups = config.max_groups
        self._max_offsets = config.max_committed_offsets
        self.offsets = Total()
        self._shards: list[tuple[Sized, Sized]] = []

    def add(self, groups: Sized, consumer_groups: Sized) -> None:
        self._shards.append((groups, consumer_groups))

    def remove(self, groups: Sized) -> None:
        self._shards = [shard for shard in self._shards if shard[0] is not groups]

    def check_group(self) -> None:
        """CodedError unless there may be another group."""
        count = sum([len(groups) + len(others) for groups, others in self._shards])
        if count >= self._max_groups:
            message = f"The broker has its {self._max_groups} groups (ottla.max.groups)."
            raise CodedError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    @property
    def is_full_of_offsets(self) -> bool:
        return self.offsets.weight >= self._max_offsets
