"""A gateway that lost the bus without an error: its brokers go to another gateway, and lose nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from brokers.wire.errors import ErrorCode
from bus.interface import BusError
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum, heartbeat
from tests.support.waiting import wait_until

# The gateways' own timeout; the engine's is two seconds.
QUICK = {"controller_quorum_fetch_timeout_ms": 250, "gateway_heartbeat_interval_ms": 50}


def cut_off(quorum: InProcessQuorum, patch: pytest.MonkeyPatch) -> None:
    """Cut gateway 100 off from the bus, as if the brokers of its topics were unreachable."""

    def publish(events: Sequence[bytes]) -> int:
        raise BusError("out of reach")

    bus = quorum.gateways[100].bus
    patch.setattr(bus, "publish", publish)
    patch.setattr(bus, "changed", lambda: False)


def fetch(client: ControllerClient, offset: int, epoch: int) -> dict[str, Any]:
    return client.fetch(offset, epoch, 1 if offset else 0)


def test_brokers_find_the_new_leading_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = InProcessQuorum(tmp_path, 2, **QUICK)
    try:
        old, new = quorum.client(100), quorum.client(101)
        epochs = quorum.join(old, 1)
        end = fetch(old, 0, 1)["HighWatermark"]
        cut_off(quorum, monkeypatch)
        wait_until(
            lambda: fetch(old, end, 1)["ErrorCode"] == ErrorCode.BROKER_NOT_AVAILABLE,
            "a broker to be sent away",
        )
        assert fetch(old, 0, 1)["Records"], "what it holds it gives"
        wait_until(lambda: quorum.state.voter == 101, "the other to lead")
        after = quorum.state.quorum_epoch
        assert old.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == ErrorCode.NOT_CONTROLLER
        wait_until(lambda: fetch(new, end, after)["ErrorCode"] == ErrorCode.NONE, "the other to know it")
        assert fetch(new, end, 1)["CurrentLeader"] == {"LeaderId": 101, "LeaderEpoch": after}
        assert new.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == ErrorCode.NONE
        monkeypatch.undo()
        wait_until(
            lambda: fetch(old, end, after)["ErrorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "the first to hear of it",
        )
        old.close()
        new.close()
    finally:
        quorum.stop()


def test_a_gateway_that_cannot_read_decisions_stops_leading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = InProcessQuorum(tmp_path, 2, **QUICK)
    try:
        old = quorum.client(100)
        epochs = quorum.join(old, 1)
        end = fetch(old, 0, 1)["HighWatermark"]

        def unreadable(*given: Any) -> Any:
            raise BusError("no decision can be read")

        bus = quorum.gateways[100].bus
        monkeypatch.setattr(bus, "changed", unreadable)
        monkeypatch.setattr(bus, "decided_columns", unreadable)
        wait_until(lambda: quorum.state.voter == 101, "the other to lead")
        assert old.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == ErrorCode.NOT_CONTROLLER
        assert fetch(old, end, 1)["ErrorCode"] == ErrorCode.BROKER_NOT_AVAILABLE
        monkeypatch.undo()
        new_epoch = quorum.state.quorum_epoch
        wait_until(
            lambda: fetch(old, 0, new_epoch)["ErrorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "the first to hear of it",
        )
        old.close()
    finally:
        quorum.stop()


def test_the_only_gateway_continues_when_the_bus_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = InProcessQuorum(tmp_path, **QUICK)
    try:
        client = quorum.client()
        epochs = quorum.join(client, 1)
        end = fetch(client, 0, 1)["HighWatermark"]
        cut_off(quorum, monkeypatch)
        wait_until(lambda: fetch(client, end, 1)["ErrorCode"] != ErrorCode.NONE, "a broker to be sent away")
        assert client.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == ErrorCode.NOT_CONTROLLER
        assert client.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE
        monkeypatch.undo()
        wait_until(lambda: fetch(client, end, 1)["ErrorCode"] == ErrorCode.NONE, "the gateway to go on")
        response = client.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))
        assert (response["ErrorCode"], response["IsFenced"]) == (ErrorCode.NONE, False)
        assert quorum.state.quorum_epoch == 1
        client.close()
    finally:
        quorum.stop()
