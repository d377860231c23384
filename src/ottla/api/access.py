"""Who may do what: the one question that handlers ask before they look at anything a client names.

The broker's `Services.authorizer` answers it. `AllowAll` is the one there is when no ACLs are kept.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from ottla.api.call import Peer

CLUSTER_NAME = "kafka-cluster"  # Kafka's name of the one resource of kind CLUSTER
NOT_ASKED = -(1 << 31)  # authorized operations that the client did not want to know


class Operation(IntEnum):
    """What a client wants to do; Kafka's numbers, which are bits where operations are listed."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Resource(IntEnum):
    """The kinds of things that operations are about; Kafka's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


# Which operations there are on a kind of resource.
_OPERATIONS = {
    Resource.TOPIC: tuple(
        op for op in Operation if op not in (Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE)
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


class Authorizer(Protocol):
    """Decides for one client, one operation, one resource. Called on the loop for every request: it must be quick."""

    def allows(self, peer: Peer, operation: Operation, resource: Resource, name: str) -> bool: ...


class AllowAll:
    """Everybody may do everything."""

    def allows(self, peer: Peer, operation: Operation, resource: Resource, name: str) -> bool:
        return True


def authorized_operations(authorizer: Authorizer, peer: Peer, resource: Resource, name: str) -> int:
    """What the client may do with a resource: a bit for each operation."""
    return sum(1 << op for op in _OPERATIONS[resource] if authorizer.allows(peer, op, resource, name))


def cluster_operations(authorizer: Authorizer, peer: Peer, *, asked: bool) -> int:
    """What the client may do with the cluster, if it asked; nothing, if it may not even see it."""
    if not asked:
        return NOT_ASKED
    if not authorizer.allows(peer, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        return 0
    return authorized_operations(authorizer, peer, Resource.CLUSTER, CLUSTER_NAME)
