"""A broker took ``/controller`` after its removal: a gateway takes it back if nothing has changed since."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Create
from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Identity
from brokers.gateways.zk.term.bus_note import OtherBusError, noted, text_of
from brokers.gateways.zk.term.taking import take_place
from brokers.voters import Voter
from tests.brokers.gateways.zk.gateways import gateways
from tests.brokers.gateways.zk.zookeeper import Zookeeper
from tests.support.waiting import wait_until

BUS_ID = 5
VOTERS = (Voter(100, "127.0.0.1", 1), Voter(101, "127.0.0.1", 2))
STATE = "/brokers/topics/t/partitions/0/state"
QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}


def took(gateway: int = 100) -> Session:
    """Return the session of a gateway that has just taken the place."""
    session = Session("none:1", 6_000, lambda path: None, lambda why: None)
    session.open(1_000)
    identity = Identity(gateway=gateway, voters=VOTERS, zookeeper="none:1", cluster_id="c")
    take_place(session, identity, BUS_ID, ClusterView())
    return session


def broker_takes(zookeeper: Zookeeper) -> None:
    """Remove ``/controller`` if it is there, and let a broker be the quickest."""
    zookeeper.znodes.pop(znodes.CONTROLLER, None)
    zookeeper.create(znodes.CONTROLLER, znodes.controller_text(3, 1))
    zookeeper.set(znodes.CONTROLLER_EPOCH, str(epoch(zookeeper) + 1).encode())


def epoch(zookeeper: Zookeeper) -> int:
    return znodes.epoch_of(zookeeper.get(znodes.CONTROLLER_EPOCH)[0])


def controller(zookeeper: Zookeeper) -> int | None:
    held = zookeeper.znodes.get(znodes.CONTROLLER)
    return None if held is None else znodes.controller_of(held.data).brokerid


def note(zookeeper: Zookeeper) -> bytes:
    return zookeeper.get(znodes.BUS)[0]


@pytest.fixture
def led(zookeeper: Zookeeper) -> Zookeeper:
    """A ZooKeeper in which a gateway has led a topic, until a broker took its place."""
    session = took()
    session.write([Create("/brokers/topics/t", b"{}"), Create("/brokers/topics/t/partitions", b"")])
    session.write([Create("/brokers/topics/t/partitions/0", b""), Create(STATE, b"{}")])
    broker_takes(zookeeper)
    return zookeeper


def test_a_broker_that_has_changed_nothing_loses_the_place_again(led: Zookeeper) -> None:
    took()
    assert (controller(led), epoch(led), note(led)) == (100, 3, text_of(BUS_ID, 3))
    # And so does the next one.
    broker_takes(led)
    took(101)
    assert (controller(led), epoch(led), note(led)) == (101, 5, text_of(BUS_ID, 5))


CHANGES: dict[str, Callable[[Zookeeper], object]] = {
    STATE: lambda held: held.set(STATE, b"{}"),
    "/brokers/topics/t": lambda held: held.set("/brokers/topics/t", b"{}"),
    "/brokers/topics": lambda held: held.create("/brokers/topics/u", b"{}"),
}


@pytest.mark.parametrize("path", CHANGES)
def test_a_broker_that_has_changed_something_keeps_the_place(led: Zookeeper, path: str) -> None:
    CHANGES[path](led)
    before = dict(led.znodes)
    with pytest.raises(OtherBusError, match=f"and {path} has changed since: take the cluster over onto an empty bus"):
        took()
    assert note(led) == text_of(BUS_ID, 1, is_outdated=True)
    assert led.znodes | {znodes.BUS: before[znodes.BUS]} == before
    # Nobody reads all of that again and again.
    led.before_read = lambda read: reads.append(read)
    reads: list[str] = []
    with pytest.raises(ZookeeperError, match="broker 3 is the controller"):
        took()
    assert STATE not in reads
    del led.znodes[znodes.CONTROLLER]
    with pytest.raises(OtherBusError, match="has decided something since"):
        took()


def test_a_gateway_that_was_held_up_notes_nothing_over_the_note_of_the_next(led: Zookeeper) -> None:
    def take(read: str) -> None:
        if read == "/brokers/topics/t":
            led.before_read = lambda path: None
            took(101)
            led.set(STATE, b"{}")

    led.before_read = take
    with pytest.raises(ZookeeperError):
        took()
    assert (controller(led), note(led)) == (101, text_of(BUS_ID, 3))


@pytest.mark.parametrize("path", CHANGES)
def test_the_place_is_given_back_if_the_broker_was_still_writing(led: Zookeeper, path: str) -> None:
    begun = epoch(led)

    def change(read: str) -> None:
        # The first look is over by then.
        if read == "/feature" or (read == znodes.CONTROLLER and STATE in seen):
            led.before_read = lambda path: None
            CHANGES[path](led)
        seen.add(read)

    seen: set[str] = set()
    led.before_read = change
    with pytest.raises(OtherBusError, match=path):
        took()
    assert (controller(led), epoch(led), note(led)) == (None, begun + 1, text_of(BUS_ID, 1, is_outdated=True))
    # A broker takes it, and nobody takes it back from that one.
    broker_takes(led)
    with pytest.raises(ZookeeperError, match="broker 3 is the controller"):
        took()


def test_a_gateway_that_is_killed_before_it_has_looked_leaves_that_to_the_next(
    led: Zookeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = led.get(znodes.CONTROLLER_EPOCH)[1].mzxid
    with monkeypatch.context() as patched:
        patched.setattr("brokers.gateways.zk.term.taking.prove", lambda *given: None)
        took()
    assert note(led) == text_of(BUS_ID, 1, since)
    # Nor is the cluster handed back before somebody has looked.
    with pytest.raises(OtherBusError, match="start it again"):
        noted(Session("none:1", 6_000, lambda path: None, lambda why: None), BUS_ID, 4)
    took(101)
    assert (controller(led), note(led)) == (101, text_of(BUS_ID, 4))


def test_two_brokers_that_led_one_after_the_other_are_not_told_apart_from_one_that_changed_something(
    led: Zookeeper,
) -> None:
    broker_takes(led)
    with pytest.raises(ZookeeperError, match="broker 3 is the controller"):
        took()


def test_a_gateway_whose_place_a_broker_took_leads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as running:
        running.start(100)
        wait_until(lambda: running.leads(100), "the gateway to lead")
        with running.tree.lock:
            broker_takes(running.tree)
            running.tree.fire(znodes.CONTROLLER)
        wait_until(lambda: (100, 3) in running.tree.epochs and running.leads(100), "the gateway to lead again")


def test_a_gateway_whose_place_a_broker_took_before_it_was_watched_leads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_place, calls = Session.keep_place, count()
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as running:

        def held_up(session: Session) -> None:
            if next(calls) == 0:
                with running.tree.lock:
                    broker_takes(running.tree)
            keep_place(session)

        monkeypatch.setattr(Session, "keep_place", held_up)
        running.start(100)
        wait_until(lambda: (100, 3) in running.tree.epochs and running.leads(100), "the gateway to lead again")
