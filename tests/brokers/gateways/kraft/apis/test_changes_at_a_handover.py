"""Two gateways compute a list from what each knows, and one of them does not know yet that the other one leads."""

import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import encode

from brokers.gateways.kraft.messages import decode_response
from brokers.wire.errors import ErrorCode
from state.event_text import decode
from state.events import GatewayHeartbeat, GatewayStarted
from tests.brokers.gateways.kraft.apis.topic_requests import created, topics
from tests.support.controller_client import ControllerClient, key_of
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import TIMEOUT_S, wait_until

APPEND = 2
THROTTLED = "leader.replication.throttled.replicas"


def events(quorum: InProcessQuorum) -> list[bytes]:
    return [one.raw for one in quorum.bus.read(0, quorum.bus.last_seq())]


def resignation_of(quorum: InProcessQuorum, gateway: int) -> bytes:
    """Return the last heartbeat of a gateway that stops."""
    started = [one for one in map(decode, events(quorum)) if isinstance(one, GatewayStarted)]
    [incarnation] = {one.incarnation for one in started if one.gateway == gateway}
    return encode(GatewayHeartbeat(time_ms=0, gateway=gateway, incarnation=incarnation, want_shutdown=True))


def appended(client: ControllerClient, item: str, *, forwarded: bool) -> Any:
    config = {"Name": THROTTLED, "ConfigOperation": APPEND, "Value": item}
    resource = {"ResourceType": 2, "ResourceName": "moved", "Configs": [config]}
    if not forwarded:
        [response] = client.ask("IncrementalAlterConfigs", Resources=[resource])["Responses"]
        return response["ErrorCode"]
    envelope = client.envelope("IncrementalAlterConfigs", Resources=[resource])
    if envelope["ErrorCode"]:
        return envelope["ErrorCode"]
    values = decode_response(key_of("IncrementalAlterConfigs"), 1, envelope["ResponseData"]).values
    return values["Responses"][0]["ErrorCode"]


@pytest.mark.parametrize("forwarded", [True, False], ids=["forwarded by a broker", "sent to the gateway"])
def test_no_acknowledged_change_is_lost(tmp_path: Path, *, forwarded: bool) -> None:
    quorum = InProcessQuorum(tmp_path, 2)
    may_read = threading.Event()
    may_read.set()
    former, leading = quorum.client(100), quorum.client(101)
    try:
        quorum.decide_by(controller_quorum_fetch_timeout_ms=600_000)
        quorum.join(former, 1)
        created(former, "moved", replicas=1)
        bus = quorum.gateways[100].bus
        read = bus.decided_columns

        def read_later(*given: Any) -> Any:
            assert may_read.wait(TIMEOUT_S)
            return read(*given)

        bus.decided_columns = read_later  # type: ignore[method-assign]
        may_read.clear()
        quorum.bus.publish([resignation_of(quorum, 100)])
        wait_until(lambda: leading.fetch(0, 0)["CurrentLeader"]["LeaderId"] == 101, "gateway 101 to lead")
        assert appended(leading, "0:1", forwarded=forwarded) == ErrorCode.NONE
        errors: list[int] = []
        late = threading.Thread(target=lambda: errors.append(appended(former, "0:2", forwarded=forwarded)))
        late.start()
        wait_until(
            lambda: any(b'"0:2"' in raw for raw in events(quorum)), "the former leader to publish what it computed"
        )
        may_read.set()
        late.join(TIMEOUT_S)
        assert errors == [ErrorCode.NOT_CONTROLLER]
        assert topics(quorum)["moved"]["config"] == {THROTTLED: "0:1"}
        assert appended(leading, "0:2", forwarded=forwarded) == ErrorCode.NONE
        assert topics(quorum)["moved"]["config"] == {THROTTLED: "0:1,0:2"}
    finally:
        may_read.set()
        for client in (former, leading):
            client.close()
        quorum.stop()
