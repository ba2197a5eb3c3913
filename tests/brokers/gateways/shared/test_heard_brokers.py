"""Gateways report the brokers that they hear, and the gateway that brokers reach leads."""

from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from brokers.gateways.shared import heard_brokers
from brokers.gateways.shared.heard_brokers import HEARD_MAX, HeardBrokers
from brokers.wire.errors import ErrorCode
from tests.support.gateway_in_process import InProcessQuorum, heartbeat
from tests.support.waiting import wait_until

BEATS = {"gateway_heartbeat_interval_ms": 50}
# Longer than the time from one tick of the engine to the next.
SOON_MS = 1_200


def said(quorum: InProcessQuorum, gateway: int) -> list[int]:
    """Return the brokers that a gateway's newest heartbeat names."""
    events = [msgspec.json.decode(entry.raw) for entry in quorum.bus.read(0, quorum.bus.last_seq())]
    beats = [one["hears"] for one in events if one["kind"] == "gateway_heartbeat" and one["gateway"] == gateway]
    named: list[int] = beats[-1] if beats else []
    return named


def test_whoever_asks_is_heard_also_where_nobody_leads(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, 2, **BEATS)
    try:
        leading, other = quorum.client(100), quorum.client(101)
        epochs = quorum.join(leading, 1, 2, 3)
        wait_until(lambda: said(quorum, 100) == [1, 2, 3], "the leader to have heard all")
        assert said(quorum, 101) == []
        assert other.fetch(0, 1, replica=2)["ErrorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        wait_until(lambda: said(quorum, 101) == [2], "the other to have heard a fetch")
        other.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))
        wait_until(lambda: said(quorum, 101) == [1, 2], "the other to have heard a heartbeat")
        assert quorum.gateways[101].gateway.measures().heard == 2
        leading.close()
        other.close()
    finally:
        quorum.stop()


def test_strangers_are_not_heard(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, **BEATS)
    try:
        client = quorum.client()
        quorum.join(client, 1, 2)
        # Neither a client, nor a broker that is not registered, nor one of another cluster.
        client.fetch(0, 1)
        client.fetch(0, 1, replica=7)
        client.fetch(0, 1, replica=-2)
        client.ask("BrokerRegistration", **quorum.registration(8, ClusterId="another"))
        quorum.join(client, 3)
        wait_until(lambda: 3 in said(quorum, 100), "the last to be heard")
        assert said(quorum, 100) == [1, 2, 3]
        client.close()
    finally:
        quorum.stop()


def test_the_gateway_that_brokers_reach_leads(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, 2, **BEATS, controller_quorum_fetch_timeout_ms=SOON_MS)
    quorum.decide_by(controller_quorum_fetch_timeout_ms=SOON_MS)
    try:
        former, other = quorum.client(100), quorum.client(101)
        epochs = quorum.join(former, 1)
        wait_until(lambda: said(quorum, 100) == [1], "the leader to have heard its broker")
        former.close()

        def leads() -> bool:
            other.fetch(0, 1, replica=1)
            return quorum.state.voter == 101

        wait_until(leads, "the gateway to lead that the broker reaches")
        wait_until(
            lambda: other.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == ErrorCode.NONE,
            "that gateway to know it",
        )
        assert quorum.broker(1)["state"] == "active"
        other.close()
    finally:
        quorum.stop()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time, which stands still."""
    now = [10_000]
    monkeypatch.setattr(heard_brokers, "steady_ms", lambda: now[0])
    return now


def test_a_contact_counts_longer_where_another_gateway_leads(clock: list[int]) -> None:
    heard = HeardBrokers(2_000, 4_000)
    heard.hear(2)
    clock[0] += 1_999
    heard.hear(1)
    assert heard.lately(leads=True) == (1, 2)
    clock[0] += 1
    assert (heard.lately(leads=True), heard.lately(leads=False)) == ((1,), (1, 2))
    clock[0] += 2_000
    assert (heard.lately(leads=True), heard.lately(leads=False)) == ((), (1,))


def test_a_time_in_which_the_process_stood_still_does_not_count(clock: list[int]) -> None:
    heard = HeardBrokers(2_000, 4_000)
    heard.hear(1)
    clock[0] += 60_000
    heard.forgive(59_000)
    assert heard.lately(leads=True) == (1,)


def test_the_list_is_bounded_and_makes_room(clock: list[int]) -> None:
    heard = HeardBrokers(2_000, 4_000)
    for broker in range(2 * HEARD_MAX):
        heard.hear(broker)
    assert len(heard.told(leads=True, live=[])) == HEARD_MAX
    clock[0] += 4_000
    assert heard.told(leads=True, live=[]) == ()
    heard.hear(2 * HEARD_MAX)
    assert heard.told(leads=True, live=[]) == (2 * HEARD_MAX,)


def test_a_leader_that_hears_no_live_broker_says_so_once(clock: list[int]) -> None:
    heard = HeardBrokers(2_000, 4_000)
    with capture_logs() as lines:
        heard.told(leads=True, live=[])
        heard.told(leads=False, live=[1])
        # Brokers have yet to find it.
        heard.told(leads=True, live=[1, 2])
        clock[0] += 5_999
        heard.told(leads=True, live=[1, 2])
        assert lines == []
        clock[0] += 1
        heard.told(leads=True, live=[1, 2])
        heard.told(leads=True, live=[1, 2])
        heard.hear(2)
        heard.told(leads=True, live=[1, 2])
        clock[0] += 2_000
        heard.told(leads=True, live=[1, 2])
    assert [(one["event"], one["log_level"]) for one in lines] == [
        ("this gateway leads, and hears no broker", "warning"),
        ("brokers are heard again", "info"),
        ("this gateway leads, and hears no broker", "warning"),
    ]
