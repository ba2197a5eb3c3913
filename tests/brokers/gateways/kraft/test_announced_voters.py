"""Gateways keep the voters in the metadata log: from a setting or by request, and where a gateway has moved to."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from brokers.gateways.kraft.announced_voters import request as asked_for
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.metadata.voters import directory_id_of
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from brokers.wire.errors import ErrorCode
from bus.clock import now_ms
from state.entity import VOTERS
from state.events import AlterEntity
from state.features import KRAFT_VERSION
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import LOOPBACK, InProcessQuorum
from tests.support.waiting import wait_until

UPGRADE, SAFE = 1, 2
CONTROLLERS = 2


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[InProcessQuorum]:
    """Two gateways with the settings that a test gives as its parameter."""
    quorum = InProcessQuorum(tmp_path, 2, **getattr(request, "param", {}))
    yield quorum
    quorum.stop()


def logged(quorum: InProcessQuorum) -> dict[str, str]:
    """Return the voters that the engine has decided."""
    held = [one for one in quorum.view().get("entities", []) if one["entity_type"] == "voters"]
    return dict(held[0]["values"]) if held else {}


def at(*voters: Voter, listener: str = "CONTROLLER") -> dict[str, str]:
    return {str(one.voter): f"{listener}://{one.host}:{one.port}" for one in voters}


def update(client: ControllerClient, level: int, how: int = UPGRADE, **more: Any) -> int:
    updates = [{"Feature": KRAFT_VERSION, "MaxVersionLevel": level, "UpgradeType": how}]
    return int(client.forward("UpdateFeatures", FeatureUpdates=updates, **more)["ErrorCode"])


def finalized(client: ControllerClient) -> int:
    features = {one["Name"]: one["MaxVersionLevel"] for one in client.ask("ApiVersions")["FinalizedFeatures"]}
    return int(features.get(KRAFT_VERSION, 0))


def move(quorum: InProcessQuorum, gateway: int) -> Voter:
    """Start a gateway that has stopped on another port. The other gateway is not told."""
    [port] = free_ports(1)
    moved = Voter(gateway, LOOPBACK, port)
    quorum.voters = tuple(moved if voter.voter == gateway else voter for voter in quorum.voters)
    quorum.start(gateway)
    return moved


def test_the_level_is_raised_by_request_and_never_lowered(running: InProcessQuorum) -> None:
    client = running.client(100)
    assert (finalized(client), logged(running)) == (0, {})
    assert update(client, 0) == ErrorCode.NONE, "it has that level"
    assert update(client, 1, ValidateOnly=True) == ErrorCode.NONE
    assert update(client, 2) == ErrorCode.INVALID_UPDATE_VERSION
    assert (finalized(client), logged(running)) == (0, {})
    both = [
        {"Feature": KRAFT_VERSION, "MaxVersionLevel": 1, "UpgradeType": UPGRADE},
        {"Feature": "transaction.version", "MaxVersionLevel": 2, "UpgradeType": UPGRADE},
    ]
    assert client.forward("UpdateFeatures", FeatureUpdates=both)["ErrorCode"] == ErrorCode.NONE
    assert (finalized(client), logged(running)) == (1, at(*running.voters))
    assert update(client, 1) == ErrorCode.NONE
    assert update(client, 0, SAFE) == ErrorCode.INVALID_UPDATE_VERSION
    topics = [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]
    told = client.ask("DescribeQuorum", Topics=topics)
    voters = told["Topics"][0]["Partitions"][0]["CurrentVoters"]
    assert [one["ReplicaDirectoryId"] for one in voters] == [directory_id_of(100), directory_id_of(101)]
    client.close()


@pytest.mark.parametrize(
    "running", [{"kraft_version": 1, "controller_listener_names": "CONTROLLER_TLS"}], indirect=True
)
def test_the_log_gets_voters_by_a_setting(running: InProcessQuorum) -> None:
    expected = at(*running.voters, listener="CONTROLLER_TLS")
    wait_until(lambda: logged(running) == expected, "the voters to be in the log")


@pytest.mark.parametrize("running", [{"kraft_version": 1}], indirect=True)
@pytest.mark.parametrize("gateway", [100, 101])
def test_a_gateway_that_has_moved_says_so_before_it_may_lead(running: InProcessQuorum, gateway: int) -> None:
    """Gateway 100 leads first. So it also moves while it is the leader of the last epoch."""
    wait_until(lambda: len(logged(running)) == 2, "the voters to be in the log")
    running.gateways[gateway].stop()
    move(running, gateway)
    assert logged(running) == at(*running.voters)
    other = running.client(201 - gateway)

    def ports() -> dict[int, int]:
        controllers = other.ask("DescribeCluster", EndpointType=CONTROLLERS)["Brokers"]
        return {one["BrokerId"]: one["Port"] for one in controllers}

    # The other gateway was not told, and reads it in the log.
    wait_until(lambda: ports() == {one.voter: one.port for one in running.voters}, "the other to name the new port")
    other.close()


@pytest.mark.parametrize("running", [{"kraft_version": 1}], indirect=True)
def test_a_leader_removes_voters_that_it_does_not_know(running: InProcessQuorum) -> None:
    wait_until(lambda: len(logged(running)) == 2, "the voters to be in the log")
    for gateway in (100, 101):
        running.gateways[gateway].stop()
    running.voters = running.voters[1:]
    running.start(101)
    wait_until(lambda: logged(running) == at(*running.voters), "only the known voter to be left")


def test_only_what_differs_is_asked_for() -> None:
    """The address of another gateway is not repeated, because that gateway may just have moved."""
    here, other, added = (Voter(100 + number, LOOPBACK, 9_000 + number) for number in range(3))
    logged = at(Voter(100, LOOPBACK, 1), Voter(101, LOOPBACK, 2), Voter(109, LOOPBACK, 3))
    context = SimpleNamespace(
        identity=SimpleNamespace(gateway=100, here=here, voters=(here, other, added)),
        settings=SimpleNamespace(listener_names=["CONTROLLER"]),
        logged_voters=logged,
    )
    event = asked_for(cast(Context, context))
    assert event.values == {**at(here, added), "109": None}


@pytest.mark.parametrize("running", [{"kraft_version": 1}], indirect=True)
@pytest.mark.parametrize("gateway", [100, 101])
def test_a_gateway_corrects_its_own_address(running: InProcessQuorum, gateway: int) -> None:
    """A former address may come back: the gateway that led asked for it before it heard of the new one."""
    wait_until(lambda: len(logged(running)) == 2, "the voters to be in the log")
    former = at(Voter(gateway, LOOPBACK, 1))
    event = AlterEntity(time_ms=now_ms(), entity_type=VOTERS, names={}, values={**former})
    seq = running.bus.publish([msgspec.json.encode(event)])
    wait_until(lambda: running.bus.decided_seq() >= seq, "the former address to be decided")
    wait_until(lambda: logged(running) == at(*running.voters), "the gateway to say where it is")
