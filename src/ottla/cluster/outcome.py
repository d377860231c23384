"""What a command on the cluster gives: the next image, and a result for each thing that was asked for."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.cluster.image import ClusterImage, TopicInfo
from ottla.errors import BrokerError


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one item of a request; `error_code` is Kafka's, 0 for none."""

    name: str | None
    error_code: int = 0
    error_message: str | None = None
    topic_id: uuid.UUID | None = None
    topic: TopicInfo | None = None  # as the command made it, or would make it; as it was, if it was deleted

    @property
    def ok(self) -> bool:
        return self.error_code == 0

    @classmethod
    def failed(cls, name: str | None, error: BrokerError, topic_id: uuid.UUID | None = None) -> Result:
        return cls(name, error.code, str(error) or None, topic_id)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The image after a command: the same object if nothing is to change. The store gives it its revision."""

    image: ClusterImage
    results: list[Result] = field(default_factory=list)


Command = Callable[[ClusterImage], Outcome]
