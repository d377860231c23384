"""How a member of a consumer group gets from what it has to what it should have, one heartbeat after the other.

First it gives up what it should not have, and keeps its epoch until it has. Then it gets the epoch of the target, and
with it all that nobody else has any more; what others still have comes with a later heartbeat.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from ottla.coordinator.consumer.group import ConsumerMember
from ottla.errors import CodedError
from ottla.internal_topics.consumer_group_records import NOTHING, Assigned, MemberState, Standing
from ottla.protocol.errors import ErrorCode

Owned = Sequence[tuple[uuid.UUID, Sequence[int]]]  # what a member says that it has


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Assigned,
    wanted: frozenset[uuid.UUID] | set[uuid.UUID],
    is_owned: Callable[[uuid.UUID, int], bool],
    owned: Owned | None,
    *,
    has_new_subscription: bool,
) -> Standing:
    """Where the member is now. `wanted` are the topics that it subscribes to."""
    now = member.standing
    if now.state is MemberState.UNKNOWN and (owned is None or owned):
        raise CodedError(
            ErrorCode.FENCED_MEMBER_EPOCH, "The state of the member is not known: it has to join again."
        )
    is_settled = now.state is MemberState.STABLE and now.epoch == target_epoch
    is_revoking = now.state is MemberState.UNREVOKED_PARTITIONS and _still_has(owned, now.revoking)
    if is_settled or is_revoking:
        return _dropped(now, wanted, owned) if has_new_subscription else now
    epoch = target_epoch if now.state is MemberState.UNKNOWN else now.epoch
    return _next(now, epoch, target_epoch, target, wanted, is_owned, owned)


def _still_has(owned: Owned | None, given_up: Assigned) -> bool:
    """Whether a member has partitions that it is to give up; who does not say may have them."""
    if owned is None:
        return True
    return any(given_up.get(topic_id, frozenset()).intersection(numbers) for topic_id, numbers in owned)


def _dropped(now: Standing, wanted: frozenset[uuid.UUID] | set[uuid.UUID], owned: Owned | None) -> Standing:
    """Without the topics that the member does not want any more."""
    unwanted = {topic_id: numbers for topic_id, numbers in now.assigned.items() if topic_id not in wanted}
    if not unwanted:
        return now
    assigned = {topic_id: numbers for topic_id, numbers in now.assigned.items() if topic_id in wanted}
    revoking = dict(now.revoking)
    for topic_id, numbers in unwanted.items():
        revoking[topic_id] = revoking.get(topic_id, frozenset()) | numbers
    if _still_has(owned, revoking):
        return now._replace(state=MemberState.UNREVOKED_PARTITIONS, assigned=assigned, revoking=revoking)
    return now._replace(assigned=assigned)


def _next(
    now: Standing,
    epoch: int,
    target_epoch: int,
    target: Assigned,
    wanted: frozenset[uuid.UUID] | set[uuid.UUID],
    is_owned: Callable[[uuid.UUID, int], bool],
    owned: Owned | None,
) -> Standing:
    kept: dict[uuid.UUID, frozenset[int]] = {}
    revoking: dict[uuid.UUID, frozenset[int]] = {}
    coming: dict[uuid.UUID, frozenset[int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*target, *now.assigned)):
        should = target.get(topic_id, frozenset()) if topic_id in wanted else frozenset()
        has = now.assigned.get(topic_id, frozenset())
        # Partitions that this member is giving up belong to no other member.
        own = now.revoking.get(topic_id, frozenset())
        free = frozenset(n for n in should - has if n in own or not is_owned(topic_id, n))
        waits = waits or free != should - has
        for found, numbers in ((kept, has & should), (revoking, has - should), (coming, free)):
            if numbers:
                found[topic_id] = numbers
    if revoking and _still_has(owned, revoking):
        return Standing(epoch, now.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    for topic_id, numbers in coming.items():
        kept[topic_id] = kept.get(topic_id, frozenset()) | numbers
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return Standing(target_epoch, now.epoch, state, kept, NOTHING)
