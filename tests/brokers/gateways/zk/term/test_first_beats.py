"""Brokers stay alive for the engine while a gateway reads ZooKeeper for long."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client import connection
from brokers.gateways.zk.moves.adoption import adopt
from brokers.gateways.zk.settings import Settings
from bus.clock import now_ms
from state.event_text import decode
from state.events import BrokerHeartbeat, CreateTopic
from tests.brokers.gateways.zk.gateways import Gateways, gateways
from tests.brokers.gateways.zk.zookeeper import Transaction, Zookeeper
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.znode_cluster import PATIENT, ZnodeCluster

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}
READ_S = 0.1


def beats(led: Gateways, broker: int) -> int:
    return len(
        [one for one in led.events(BrokerHeartbeat) if isinstance(one, BrokerHeartbeat) and one.broker == broker]
    )


def are_over(led: Gateways, broker: int) -> bool:
    before, other = beats(led, broker), beats(led, 1)
    wait_until(lambda: beats(led, 1) > other + 5, "heartbeats of the other broker")
    return beats(led, broker) == before


def is_held(led: Gateways, begun: int) -> Callable[[], bool]:
    return lambda: len(led.tree.epochs) > begun and not led.leads(100)


def test_brokers_are_heard_while_a_term_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        led.tree.put_broker(1)
        led.tree.put_broker(2)
        led.start(100)
        wait_until(lambda: led.state_of(1) == led.state_of(2) == "active", "the brokers to serve")
        go_on = threading.Event()
        led.tree.before_read = lambda path: path == znodes.PRODUCER_IDS and go_on.wait(TIMEOUT_S)
        begun = len(led.tree.epochs)
        led.tree.cut.add(100)
        wait_until(lambda: not led.leads(100), "the term to end")
        led.tree.cut.clear()
        wait_until(is_held(led, begun), "another term to begin, and to read")
        before = beats(led, 1)
        wait_until(lambda: beats(led, 1) > before + 5, "heartbeats meanwhile")
        # One that is gone is not heard, and one that started again is another.
        led.tree.znodes.pop("/brokers/ids/2")
        led.tree.put_broker(2)
        wait_until(lambda: are_over(led, 2), "no heartbeats of a broker that started again")
        assert not led.leads(100)
        go_on.set()
        wait_until(lambda: led.leads(100), "the gateway to lead")
        wait_until(lambda: led.state_of(2) == "active", "the broker to serve again")


def test_brokers_are_heard_while_they_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        led.tree.put_broker(1)
        for number in range(10):
            led.tree.put_topic(f"t{number}", [1])
        led.tree.before_read = lambda path: "/topics/" in path and time.sleep(READ_S)
        monkeypatch.setattr(connection, "READS_AT_ONCE", 1)
        adopt(led.identity(100), Settings(broker_heartbeat_interval_ms=50), led.bus)
        assert beats(led, 1) > 10


def test_brokers_are_heard_while_a_term_writes_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes, go_on = threading.Event(), threading.Event()

    class Held(Transaction):
        """A transaction that takes long."""

        def commit(self) -> list[object]:
            writes.set()
            go_on.wait(TIMEOUT_S)
            return super().commit()

    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        led.tree.put_broker(1)
        led.start(100)
        wait_until(lambda: led.state_of(1) == "active", "the broker to serve")
        monkeypatch.setattr(led.tree, "transaction", lambda: Held(led.tree))
        led.bus.publish([json.encode(CreateTopic(time_ms=now_ms(), topic="t", assignment={"0": (1,)}))])
        assert writes.wait(TIMEOUT_S)
        before = beats(led, 1)
        wait_until(lambda: beats(led, 1) > before + 5, "heartbeats meanwhile")
        go_on.set()
        wait_until(lambda: "/brokers/topics/t/partitions/0/state" in led.tree.znodes, "the topic to be written")


def test_brokers_are_heard_while_all_threads_of_the_loop_wait_for_names(
    zookeeper: Zookeeper, cluster: ZnodeCluster
) -> None:
    cluster.client.delete("/controller")
    go_on = threading.Event()

    async def no_name_server() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(max_workers=1))
        loop.run_in_executor(None, go_on.wait, TIMEOUT_S)

    def is_heard() -> bool:
        decoded = [decode(entry.raw) for entry in cluster.bus.read(0, cluster.bus.last_seq())]
        if len([one for one in decoded if isinstance(one, BrokerHeartbeat) and one.broker == 1]) <= 5:
            return False
        # Otherwise the loop could not end.
        go_on.set()
        return True

    cluster.lead(is_heard, no_name_server, replace(PATIENT, **QUICK))
