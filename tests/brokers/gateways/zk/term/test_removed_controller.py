"""``/controller`` is removed by hand, as operators of Kafka do to have another controller elected."""

from pathlib import Path

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.zookeeper_errors import ControllerMovedError
from tests.brokers.gateways.zk.gateways import gateways
from tests.brokers.gateways.zk.zookeeper import Changed, Zookeeper
from tests.support.waiting import wait_until

GATEWAYS = frozenset({100, 101})
QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}


def controlling(ends: list[str]) -> Session:
    """Return the session of a gateway that has become the controller. Why it ends is added to ``ends``."""
    opened = Session("none:1", 6_000, lambda path: None, ends.append)
    opened.open(1_000)
    opened.take(100, GATEWAYS, 0, 0)
    return opened


def controller(zookeeper: Zookeeper) -> int:
    return znodes.controller_of(zookeeper.get(znodes.CONTROLLER)[0]).brokerid


def test_the_gateway_puts_it_back_at_once_and_begins_again(zookeeper: Zookeeper) -> None:
    ends: list[str] = []
    controlling(ends).keep_place()
    zookeeper.delete(znodes.CONTROLLER)
    zookeeper.fire(znodes.CONTROLLER)
    assert (controller(zookeeper), ends) == (100, ["somebody removed /controller, and this gateway put it back"])


def test_it_is_put_back_if_it_was_removed_before_the_gateway_watched_it(zookeeper: Zookeeper) -> None:
    ends: list[str] = []
    session = controlling(ends)
    zookeeper.delete(znodes.CONTROLLER)
    session.keep_place()
    assert (controller(zookeeper), len(ends)) == (100, 1)


def test_a_controller_that_was_quicker_keeps_it(zookeeper: Zookeeper) -> None:
    ends: list[str] = []
    controlling(ends).keep_place()
    zookeeper.delete(znodes.CONTROLLER)
    zookeeper.create(znodes.CONTROLLER, znodes.controller_text(3, 1))
    zookeeper.set(znodes.CONTROLLER_EPOCH, b"2")
    zookeeper.fire(znodes.CONTROLLER)
    assert (controller(zookeeper), ends) == (3, ["somebody changed /controller: 3 is the controller now"])


def test_a_controller_that_was_quicker_before_the_gateway_watched_it_keeps_it(zookeeper: Zookeeper) -> None:
    ends: list[str] = []
    session = controlling(ends)
    zookeeper.set(znodes.CONTROLLER, znodes.controller_text(3, 1))
    zookeeper.set(znodes.CONTROLLER_EPOCH, b"2")
    with pytest.raises(ControllerMovedError, match="3 is the controller now"):
        session.keep_place()
    assert (controller(zookeeper), ends) == (3, [])


def test_a_term_ends_even_if_nobody_can_read_who_has_it_now(zookeeper: Zookeeper) -> None:
    ends: list[str] = []
    controlling(ends).keep_place()
    zookeeper.set(znodes.CONTROLLER, b"{")
    zookeeper.set(znodes.CONTROLLER_EPOCH, b"2")
    zookeeper.fire(znodes.CONTROLLER)
    [why] = ends
    assert why.startswith("somebody changed /controller: ")


def test_what_happens_to_the_session_is_not_taken_for_a_removal(zookeeper: Zookeeper) -> None:
    ends: list[str] = []
    controlling(ends).keep_place()
    [watch] = zookeeper.watches[znodes.CONTROLLER]
    watch(Changed(None))
    assert ends == []


def test_brokers_hear_of_a_new_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        led.start(100)
        wait_until(lambda: led.leads(100), "the gateway to lead")
        led.tree.delete(znodes.CONTROLLER)
        led.tree.fire(znodes.CONTROLLER)
        wait_until(lambda: len(led.tree.epochs) > 1 and led.leads(100), "the next term")
        assert led.tree.epochs == [(100, 1), (100, 2)]
