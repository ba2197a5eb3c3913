"""A term ends soon, whatever its calls to ZooKeeper wait for."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KazooState

from brokers.gateways.zk import znodes
from tests.brokers.gateways.zk.gateways import gateways
from tests.support.waiting import TIMEOUT_S, wait_until

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}


def test_a_call_that_waits_for_zookeeper_does_not_hold_up_the_next_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, is_stopped = threading.Event(), threading.Event()
    listeners: list[Callable[[str], None]] = []

    def read(path: str) -> None:
        if path == znodes.REASSIGN_PARTITIONS and not is_stopped.is_set():
            # The client keeps a call that it gets without a connection, until it has one or is stopped.
            waits.set()
            is_stopped.wait(3 * TIMEOUT_S)
            raise ConnectionLoss

    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK, zookeeper_session_timeout_ms=100) as led:
        monkeypatch.setattr(led.tree, "add_listener", listeners.append)
        monkeypatch.setattr(led.tree, "stop", is_stopped.set)
        led.start(100)
        wait_until(lambda: led.leads(100), "the gateway to lead")
        led.tree.before_read = read
        assert waits.wait(TIMEOUT_S)
        begun = len(led.tree.epochs)
        listeners[-1](KazooState.SUSPENDED)
        wait_until(lambda: len(led.tree.epochs) > begun and led.leads(100), "the next term")
