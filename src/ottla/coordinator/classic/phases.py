"""The phases of a classic group, and what leads from one to the next.

A group is EMPTY until a member joins: a group that only keeps offsets is never anything else. A join, a leave, a
session that ends or a change of what a member says begins a REBALANCE: the group is PREPARING, which is the time for
its members to join the next generation.

When all have joined, or the time is over, the next generation begins with those who are there. Its leader works out
who gets what, and brings that with SyncGroup: meanwhile the group is COMPLETING. If nobody is left, it is EMPTY. With
the leader's assignments it is STABLE, and written to the log; if they are too large for a batch of the log they are
taken back, the group is COMPLETING again and will be told to rebalance.

Whoever reads a group with members from the log finds one that was STABLE: no other phase is ever written down. A
consumer group that becomes a classic one begins in the same way. A group that is deleted, that has become a consumer
group, or that another broker looks after now is DEAD: its timers may still come, and do nothing.

    EMPTY --> PREPARING --> COMPLETING --> STABLE
      ^          |  ^            |            |
      +----------+  +------------+------------+
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class GroupPhase(Enum):
    """Where a group is in its life, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"  # members are joining
    COMPLETING = "CompletingRebalance"  # the leader is to say who has what
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(Enum):
    """What changes the phase of a group."""

    RESTORED = "it has members already: read from the log, or a consumer group until now"
    REBALANCE = "its members have to join anew"
    JOINED = "all who will be in the next generation have joined"
    DESERTED = "nobody has joined the next generation"
    ASSIGNED = "the leader has said who has what"
    NOT_WRITTEN = "what the leader has said is too large for the log"
    REMOVED = "it is no group of this coordinator any more"


TABLE: Final[dict[GroupPhase, dict[GroupEvent, GroupPhase]]] = {
    GroupPhase.EMPTY: {
        GroupEvent.RESTORED: GroupPhase.STABLE,
        GroupEvent.REBALANCE: GroupPhase.PREPARING,
        GroupEvent.REMOVED: GroupPhase.DEAD,
    },
    GroupPhase.PREPARING: {
        GroupEvent.JOINED: GroupPhase.COMPLETING,
        GroupEvent.DESERTED: GroupPhase.EMPTY,
        GroupEvent.REMOVED: GroupPhase.DEAD,
    },
    GroupPhase.COMPLETING: {
        GroupEvent.ASSIGNED: GroupPhase.STABLE,
        GroupEvent.REBALANCE: GroupPhase.PREPARING,
        GroupEvent.REMOVED: GroupPhase.DEAD,
    },
    GroupPhase.STABLE: {
        GroupEvent.REBALANCE: GroupPhase.PREPARING,
        GroupEvent.NOT_WRITTEN: GroupPhase.COMPLETING,
        GroupEvent.REMOVED: GroupPhase.DEAD,
    },
    GroupPhase.DEAD: {},
}
