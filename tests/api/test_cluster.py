"""DescribeCluster, FindCoordinator and InitProducerId."""

from __future__ import annotations

import pytest

from ottla.api.access import CLUSTER_NAME, NOT_ASKED, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.api.conftest import MakeWorld
from tests.api.world import Refusing, World

ALL_CLUSTER_OPERATIONS = 8096  # as Kafka 4.2 lists them where nothing is refused
GROUP, TRANSACTION, SHARE = 0, 1, 2

# -- DescribeCluster


def test_every_version_describes_the_cluster(world: World) -> None:
    world.register(2)
    for version in range(3):
        answer = world.ask(DescribeClusterRequest(), version)
        assert (answer.error_code, answer.error_message) == (0, None)
        assert (answer.cluster_id, answer.controller_id, answer.endpoint_type) == ("cluster-1", 1, 1)
        assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in answer.brokers] == [
            (1, "host-1", 9091, "rack-1", False),
            (2, "host-2", 9092, "rack-2", False),
        ]
        assert answer.cluster_authorized_operations == NOT_ASKED


def test_operations_on_the_cluster_are_told_if_asked_for(world: World) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert world.ask(request).cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    world.services.authorizer = Refusing((Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME))
    assert world.ask(request).cluster_authorized_operations == ALL_CLUSTER_OPERATIONS - (1 << Operation.ALTER)
    world.services.authorizer = Refusing((Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME))
    assert world.ask(request).cluster_authorized_operations == 0


@pytest.mark.parametrize(
    ("endpoint_type", "code"), [(2, "MISMATCHED_ENDPOINT_TYPE"), (3, "UNSUPPORTED_ENDPOINT_TYPE")]
)
def test_only_brokers_are_described(world: World, endpoint_type: int, code: str) -> None:
    answer = world.ask(DescribeClusterRequest(endpoint_type=endpoint_type))
    assert answer.error_code == ErrorCode[code]
    assert answer.error_message
    assert (answer.cluster_id, answer.controller_id, answer.brokers) == ("", -1, [])


# -- FindCoordinator


@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
def test_one_broker_coordinates_everything(world: World, key_type: int) -> None:
    for version in range(1, 4):
        answer = world.ask(FindCoordinatorRequest(key="g", key_type=key_type), version)
        assert (answer.error_code, answer.error_message) == (0, "NONE")
        assert (answer.node_id, answer.host, answer.port) == (1, "host-1", 9091)
    for version in range(4, 7):
        request = FindCoordinatorRequest(coordinator_keys=["g", "", "h"], key_type=key_type)
        answer = world.ask(request, version)
        assert [(c.key, c.error_code, c.error_message, c.node_id, c.port) for c in answer.coordinators] == [
            (key, 0, "", 1, 9091) for key in ("g", "", "h")
        ]


def test_v0_knows_groups_only(world: World) -> None:
    answer = world.ask(FindCoordinatorRequest(key="g"), 0)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "host-1", 9091)


def test_keys_are_spread_over_the_brokers(world: World) -> None:
    world.register(2)
    world.register(3)
    keys = [f"group-{number}" for number in range(60)]
    coordinators = world.ask(FindCoordinatorRequest(coordinator_keys=keys)).coordinators
    assert {c.node_id for c in coordinators} == {1, 2, 3}
    again = world.ask(FindCoordinatorRequest(coordinator_keys=keys)).coordinators
    assert [c.node_id for c in coordinators] == [c.node_id for c in again]


@pytest.mark.parametrize("key_type", [SHARE, 3])
def test_other_kinds_of_keys_are_refused(world: World, key_type: int) -> None:
    for version in range(1, 4):
        answer = world.ask(FindCoordinatorRequest(key="g", key_type=key_type), version)
        assert (answer.error_code, answer.node_id, answer.host, answer.port) == (
            ErrorCode.INVALID_REQUEST, -1, "", -1,
        )  # fmt: skip
        assert answer.error_message
    (found,) = world.ask(FindCoordinatorRequest(coordinator_keys=["g"], key_type=key_type)).coordinators
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_a_client_that_may_not_see_a_group_does_not_find_it(world: World) -> None:
    world.services.authorizer = Refusing(
        (Operation.DESCRIBE, Resource.GROUP, "g"), (Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, "g")
    )
    for key_type, code in (
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (TRANSACTION, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ):
        request = FindCoordinatorRequest(coordinator_keys=["g", "h"], key_type=key_type)
        coordinators = world.ask(request).coordinators
        assert {c.key: c.error_code for c in coordinators} == {"g": code, "h": 0}


# -- InitProducerId


def test_every_producer_gets_an_id_of_its_own(world: World) -> None:
    seen = set()
    for version in (*range(6), *range(6)):
        answer = world.ask(InitProducerIdRequest(transactional_id=None), version)
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        seen.add(answer.producer_id)
    assert len(seen) == 12


def test_a_producer_with_an_id_gets_a_new_one(world: World) -> None:
    first = world.ask(InitProducerIdRequest(transactional_id=None))
    request = InitProducerIdRequest(
        transactional_id=None, producer_id=first.producer_id, producer_epoch=first.producer_epoch
    )
    second = world.ask(request)
    assert (second.error_code, second.producer_epoch) == (0, 0)
    assert second.producer_id != first.producer_id


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(5, -1), (-1, 5)])
def test_an_id_comes_with_its_epoch(world: World, producer_id: int, producer_epoch: int) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, producer_id=producer_id, producer_epoch=producer_epoch
    )
    answer = world.ask(request)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        ErrorCode.INVALID_REQUEST, -1, -1,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "code"), [("", "INVALID_REQUEST"), ("x", "NOT_COORDINATOR")])
def test_a_transactional_id_needs_a_name_and_a_coordinator(world: World, name: str, code: str) -> None:
    answer = world.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode[code], -1, -1)


def test_idempotent_writes_can_be_refused(world: World) -> None:
    world.services.authorizer = Refusing(
        (Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME),
        (Operation.WRITE, Resource.TRANSACTIONAL_ID, "x"),
    )
    answer = world.ask(InitProducerIdRequest(transactional_id=None))
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    answer = world.ask(InitProducerIdRequest(transactional_id="x"))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_ids_are_not_given_twice_after_a_restart(make_world: MakeWorld) -> None:
    world = make_world()
    first = world.ask(InitProducerIdRequest(transactional_id=None)).producer_id
    world.restart()
    assert world.ask(InitProducerIdRequest(transactional_id=None)).producer_id > first


def test_a_store_that_fails_lets_producers_try_again(world: World) -> None:
    world.metadata.close(lambda: None)
    answer = world.ask(InitProducerIdRequest(transactional_id=None))
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
