"""A broker's life in requests: registration, heartbeats, shutdown."""

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from brokers.wire.errors import ErrorCode
from bus.clock import now_ms
from tests.brokers.gateways.kraft.storages import event
from tests.support.controller_client import LOOPBACK, ControllerClient
from tests.support.gateway_in_process import SUPPORTED, InProcessQuorum, heartbeat
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("epochs")
LISTENER = {"Name": "L", "Host": "h", "Port": 1, "SecurityProtocol": 0}


def registered(quorum: InProcessQuorum, client: ControllerClient, broker: int, incarnation: str = "A") -> int:
    answer = client.ask("BrokerRegistration", **quorum.registration(broker, incarnation))
    assert answer["ErrorCode"] == ErrorCode.NONE
    return int(answer["BrokerEpoch"])


def test_a_registered_broker_is_fenced_until_it_asks_to_serve(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    epoch = registered(quorum, client, 10)
    assert quorum.broker(10)["broker_epoch"] == epoch
    beat = client.ask("BrokerHeartbeat", **heartbeat(10, epoch, WantFence=True))
    assert (beat["ErrorCode"], beat["IsFenced"], beat["ShouldShutDown"]) == (ErrorCode.NONE, True, False)
    assert quorum.broker(10)["state"] == "fenced"
    beat = client.ask("BrokerHeartbeat", **heartbeat(10, epoch))
    assert (beat["ErrorCode"], beat["IsFenced"]) == (ErrorCode.NONE, False)
    assert quorum.broker(10)["state"] == "active"


@pytest.mark.parametrize("cordoned", [None, [], ["12LAAAAAAAAAAAAAAAAAAA"]])
def test_a_heartbeat_may_name_cordoned_log_directories(
    quorum: InProcessQuorum, client: ControllerClient, cordoned: list[str] | None
) -> None:
    """A broker of Kafka 4.3 sends a list with every heartbeat, even if it is empty, at a level that has cordoning."""
    epoch = registered(quorum, client, 40)
    beat = client.ask("BrokerHeartbeat", 2, **heartbeat(40, epoch, CordonedLogDirs=cordoned))
    assert (beat["ErrorCode"], beat["IsFenced"]) == (ErrorCode.NONE, False)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_broker_registers_in_every_version(quorum: InProcessQuorum, client: ControllerClient, version: int) -> None:
    responses = quorum.registration(20 + version)
    answer = client.ask("BrokerRegistration", version, **responses)
    assert answer["ErrorCode"] == ErrorCode.NONE
    assert quorum.broker(20 + version)["broker_epoch"] == answer["BrokerEpoch"]


def test_the_same_incarnation_keeps_its_epoch_and_another_gets_a_new_one(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    former = quorum.client()
    first = quorum.join(former, 11)[11]
    assert registered(quorum, client, 11) == first
    assert quorum.broker(11)["state"] == "active"
    former.close()
    second = let_in(client, quorum.registration(11, "B"))
    assert second > first
    assert quorum.broker(11)["state"] == "fenced"
    assert client.ask("BrokerHeartbeat", **heartbeat(11, first))["ErrorCode"] == ErrorCode.STALE_BROKER_EPOCH
    assert client.ask("BrokerHeartbeat", **heartbeat(11, second))["IsFenced"] is False


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"ClusterId": "AAAAAAAAAAAAAAAAAAAAAA"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (
            {"Listeners": [LISTENER | {"SecurityProtocol": 7}]},
            ErrorCode.INVALID_REQUEST,
        ),
        ({"Listeners": [LISTENER | {"Name": ""}]}, ErrorCode.INVALID_REGISTRATION),
        ({"Listeners": [LISTENER, LISTENER | {"Host": " "}]}, ErrorCode.INVALID_REGISTRATION),
        ({"Listeners": [LISTENER, LISTENER | {"Port": 0}]}, ErrorCode.INVALID_REGISTRATION),
        ({"IsMigratingZkBroker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"BrokerId": -1}, ErrorCode.INVALID_REGISTRATION),
        ({"LogDirs": ["12LAAAAAAAAAAAAAAAAAAA", "12LAAAAAAAAAAAAAAAAAAA"]}, ErrorCode.INVALID_REGISTRATION),
        ({"LogDirs": [f"{n:02}LAAAAAAAAAAAAAAAAAAA" for n in range(10, 75)]}, ErrorCode.INVALID_REGISTRATION),
        ({"LogDirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"LogDirs": ["AAAAAAAAAAAAAAAAAAAAAA"]}, ErrorCode.INVALID_REGISTRATION),
        ({"LogDirs": ["AAAAAAAAAAAAAAAAAAAAYw"]}, ErrorCode.INVALID_REGISTRATION),
        ({"Features": []}, ErrorCode.UNSUPPORTED_VERSION),
        ({"Features": [SUPPORTED[0] | {"MaxSupportedVersion": 26}, *SUPPORTED[1:]]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"Features": SUPPORTED[:2]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_an_invalid_registration_is_refused(
    quorum: InProcessQuorum, client: ControllerClient, given: dict[str, object], error: ErrorCode
) -> None:
    answer = client.ask("BrokerRegistration", **quorum.registration(12, **given))  # type: ignore[arg-type]
    assert answer["ErrorCode"] == error
    assert 12 not in {held["broker"] for held in quorum.view()["brokers"]}


def test_a_level_that_is_raised_meanwhile_counts(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    try:
        quorum.engine.stop()
        raised = {"entity_type": "features", "names": {}, "values": {"share.version": 1}}
        quorum.bus.publish([event("alter_entity", now_ms(), **raised)])
        (client, seq) = quorum.client(), quorum.bus.last_seq()
        with ThreadPoolExecutor(1) as asking:
            asked = asking.submit(client.ask, "BrokerRegistration", **quorum.registration(12))
            wait_until(lambda: quorum.bus.last_seq() > seq, "the registration to be on the bus")
            quorum.decide_by()
            assert asked.result(30)["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION
        assert client.ask("BrokerRegistration", **quorum.registration(12))["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION
        knows = {"Name": "share.version", "MinSupportedVersion": 0, "MaxSupportedVersion": 1}
        answer = client.ask("BrokerRegistration", **quorum.registration(12, Features=[*SUPPORTED, knows]))
        assert answer["ErrorCode"] == ErrorCode.NONE
    finally:
        quorum.stop()


def test_another_process_gets_a_brokers_id_only_when_the_former_is_known_to_be_dead(tmp_path: Path) -> None:
    """While the broker's listener accepts, neither the end of a connection nor a gateway's restart is proof."""
    quorum = InProcessQuorum(tmp_path)
    try:
        with socket.create_server((LOOPBACK, 0)) as listening:
            port = listening.getsockname()[1]
            listener = {"Name": "PLAINTEXT", "Host": LOOPBACK, "Port": port, "SecurityProtocol": 0}
            request = quorum.registration(17, "B", LogDirs=["17MAAAAAAAAAAAAAAAAAAA"])
            former = quorum.client()
            responses = former.ask("BrokerRegistration", **quorum.registration(17, Listeners=[listener]))
            former.ask("BrokerHeartbeat", **heartbeat(17, responses["BrokerEpoch"]))
            impostor = quorum.client()
            assert refused(impostor, request)
            former.close()
            assert refused(impostor, request)
            impostor.close()
            quorum.gateways[100].stop()
            quorum.start(100)
            impostor = quorum.client()
            assert refused(impostor, request)
            assert quorum.broker(17)["state"] == "active"
        # The listener is gone, but no connection ended, so the gateway finds out when the next process registers.
        assert refused(impostor, request)
        wait_until(lambda: is_lost(quorum), "the broker to be known as dead")
        assert refused(impostor, request), "it has another disk"
        assert let_in(impostor, quorum.registration(17, "C")) > responses["BrokerEpoch"]
        impostor.close()
    finally:
        quorum.stop()


def refused(client: ControllerClient, request: dict[str, object]) -> bool:
    answer = client.ask("BrokerRegistration", **request)
    return bool(answer["ErrorCode"] == ErrorCode.DUPLICATE_BROKER_REGISTRATION)


def is_lost(quorum: InProcessQuorum) -> bool:
    """Return whether the gateway has reported a lost connection."""
    return any(b'"broker_connection_lost"' in entry.raw for entry in quorum.bus.read(0, quorum.bus.decided_seq()))


def let_in(client: ControllerClient, request: dict[str, object]) -> int:
    """Register repeatedly, as a broker does while another process has its id; return the epoch."""
    responses: list[dict[str, int]] = []

    def is_let_in() -> bool:
        responses.append(client.ask("BrokerRegistration", **request))
        assert responses[-1]["ErrorCode"] in (ErrorCode.NONE, ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        return responses[-1]["ErrorCode"] == ErrorCode.NONE

    wait_until(is_let_in, "the former process to be known as dead")
    return responses[-1]["BrokerEpoch"]


def test_leaders_move_away_from_a_broker_whose_one_directory_failed(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    epoch = quorum.join(client, 18)[18]
    assignment = [{"PartitionIndex": 0, "BrokerIds": [18, 1, 2]}]
    topic = {"Name": "on-a-bad-disk", "NumPartitions": -1, "ReplicationFactor": -1, "Assignments": assignment}
    assert client.ask("CreateTopics", Topics=[topic], timeoutMs=9_000)["Topics"][0]["ErrorCode"] == ErrorCode.NONE
    assert quorum.partition("on-a-bad-disk")["leader"] == 18
    lost = quorum.registration(18)["LogDirs"]
    assert client.ask("BrokerHeartbeat", **heartbeat(18, epoch, OfflineLogDirs=lost))["IsFenced"] is True
    assert quorum.partition("on-a-bad-disk")["leader"] == 1


def test_an_unregistered_broker_is_told_so(client: ControllerClient) -> None:
    answer = client.ask("BrokerHeartbeat", **heartbeat(99, 5))
    assert answer["ErrorCode"] == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_has_not_read_its_registration_stays_fenced(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    epoch = registered(quorum, client, 13)
    end = client.fetch(0, quorum.state.quorum_epoch)["HighWatermark"]
    beat = client.ask("BrokerHeartbeat", **heartbeat(13, epoch, CurrentMetadataOffset=end - 2))
    assert (beat["IsCaughtUp"], beat["IsFenced"]) == (False, True)
    assert quorum.broker(13)["state"] == "fenced"
    beat = client.ask("BrokerHeartbeat", **heartbeat(13, epoch, CurrentMetadataOffset=end - 1))
    assert (beat["IsCaughtUp"], beat["IsFenced"]) == (True, False)


def test_a_broker_that_asks_for_it_is_fenced(quorum: InProcessQuorum, client: ControllerClient) -> None:
    epoch = quorum.join(client, 14)[14]
    assert client.ask("BrokerHeartbeat", **heartbeat(14, epoch, WantFence=True))["IsFenced"] is True
    assert quorum.broker(14)["state"] == "fenced"


def test_a_broker_may_stop_when_it_leads_nothing_and_the_others_have_heard(
    quorum: InProcessQuorum, client: ControllerClient, epochs: dict[int, int]
) -> None:
    epoch = quorum.join(client, 15)[15]
    assignment = [{"PartitionIndex": 0, "BrokerIds": [15, 1, 2]}]
    topic = {"Name": "left", "NumPartitions": -1, "ReplicationFactor": -1, "Assignments": assignment}
    assert client.ask("CreateTopics", Topics=[topic], timeoutMs=9_000)["Topics"][0]["ErrorCode"] == ErrorCode.NONE
    others = [held["broker"] for held in quorum.view()["brokers"] if held["state"] == "active" and held["broker"] != 15]
    fetching = quorum.client()

    def may_stop() -> bool:
        for broker in others:
            end = fetching.fetch(0, quorum.state.quorum_epoch)["HighWatermark"]
            fetching.fetch(end, quorum.state.quorum_epoch, quorum.state.quorum_epoch, replica=broker)
        beat = client.ask("BrokerHeartbeat", **heartbeat(15, epoch, WantShutDown=True))
        assert beat["ErrorCode"] == ErrorCode.NONE
        return bool(beat["ShouldShutDown"])

    wait_until(may_stop, "the broker to be let go")
    held = quorum.partition("left")
    assert held["leader"] in (1, 2)
    assert 15 not in held["isr"]
    # Its id is free although its connection is still open, because its disk may be replaced meanwhile.
    replaced = quorum.registration(15, "B", LogDirs=["15MAAAAAAAAAAAAAAAAAAA"])
    assert let_in(fetching, replaced) > epoch
    fetching.close()


@pytest.mark.parametrize("forwarded", [False, True])
def test_a_broker_is_forgotten(quorum: InProcessQuorum, client: ControllerClient, forwarded: bool) -> None:
    ask: Callable[..., dict[str, object]] = client.forward if forwarded else client.ask
    epoch = quorum.join(client, 16)[16]
    assert ask("UnregisterBroker", BrokerId=16)["ErrorCode"] == ErrorCode.NONE
    answer = client.ask("BrokerHeartbeat", **heartbeat(16, epoch))
    assert answer["ErrorCode"] == ErrorCode.STALE_BROKER_EPOCH
    assert ask("UnregisterBroker", BrokerId=16)["ErrorCode"] == ErrorCode.BROKER_ID_NOT_REGISTERED
