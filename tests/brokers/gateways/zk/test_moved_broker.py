"""A broker whose ``advertised.listeners`` change writes its znode again, in the same incarnation."""

import socket
from pathlib import Path

import pytest

from brokers.launch.ports import free_ports
from tests.brokers.gateways.zk.gateways import gateways
from tests.support.waiting import TIMEOUT_S, wait_until

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50, "retry_backoff_ms": 10}


def test_the_gateway_connects_to_the_new_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [nobody] = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as there, gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        there.settimeout(TIMEOUT_S)
        epoch = led.tree.put_broker(1, nobody)
        led.start(100)
        wait_until(lambda: led.state_of(1) == "active", "the broker to serve")
        assert led.tree.put_broker(1, there.getsockname()[1]) == epoch
        connection, _ = there.accept()
        connection.close()
