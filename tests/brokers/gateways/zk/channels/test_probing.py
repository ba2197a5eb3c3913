"""Gateways ask brokers in ZooKeeper mode whether they answer, and the gateway that reaches most of them leads."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from brokers.gateways.shared.file_settings import Asked
from brokers.gateways.zk.channels.probing import Probing, serving
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Settings
from brokers.wire.catalogue import Catalogue
from brokers.wire.connection import FrameConnection
from brokers.wire.messages import FRAME_LENGTH_BYTES
from state.decisions import BrokerDecision
from state.events import GatewayHeartbeat
from state.reason import Reason
from state.registration import Listener
from tests.brokers.gateways.zk.gateways import Gateways, gateways
from tests.support.waiting import TIMEOUT_S, wait_until

# Longer than the time from one tick of the engine to the next.
SOON_MS = 1_200
QUICK = {"gateway_heartbeat_interval_ms": 50, "controller_quorum_fetch_timeout_ms": SOON_MS}


class Answering:
    """A broker's port: it answers each request, or takes connections and answers nothing."""

    def __init__(self) -> None:
        self.answers = True
        self.connections: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(FRAME_LENGTH_BYTES), "big")
                request = Catalogue().decode_request(await reader.readexactly(size))
                assert request.name == "ApiVersions"
                if self.answers:
                    writer.write(bytes([0, 0, 0, 4]) + request.correlation_id.to_bytes(4, "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def port_of(answering: Answering) -> AsyncIterator[int]:
    server = await asyncio.start_server(answering.serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in answering.connections:
            writer.close()


def live(broker: int, port: int, state: str = "active") -> BrokerDecision:
    listener = Listener("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT")
    identity: dict[str, Any] = {"broker": broker, "broker_epoch": 7, "incarnation": "7", "state": state, "rack": None}
    return BrokerDecision(
        seq=1,
        controller_epoch=1,
        time_ms=1,
        reason=Reason.BROKER_UNFENCED,
        **identity,
        listeners=(listener,),
        log_dirs=(),
    )


async def until(condition: Any) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.01)


def test_brokers_that_answer_are_heard() -> None:
    async def probed() -> None:
        view, one, other = ClusterView(), Answering(), Answering()
        probing = Probing(view, Settings(controller_quorum_fetch_timeout_ms=100))
        task = asyncio.create_task(probing.run())
        async with port_of(one) as first, port_of(other) as second:
            view.apply(live(1, first))
            view.apply(live(2, second))
            await until(lambda: probing.heard == (1, 2))
            assert probing.told(0, leads=True) == (1, 2)
            # It is frozen: it takes connections.
            other.answers = False
            await until(lambda: probing.heard == (1,))
            other.answers = True
            await until(lambda: probing.heard == (1, 2))
            # It listens elsewhere now.
            view.apply(live(1, second))
            one.answers = False
            await until(lambda: len(other.connections) > 1 and probing.heard == (1, 2))
            view.apply(live(2, second, state="fenced"))
            await until(lambda: probing.heard == (1,))
        await until(lambda: probing.heard == ())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(probed())


def said(led: Gateways, number: int) -> object:
    """Return what the newest heartbeat of a gateway says of brokers."""
    beats = [one for one in led.events(GatewayHeartbeat) if isinstance(one, GatewayHeartbeat)]
    return next((one.hears for one in reversed(beats) if one.gateway == number), None)


def test_the_gateway_leads_that_reaches_the_brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, over = threading.Event(), threading.Event()
    ports: list[int] = []
    cut: set[int] = set()
    real = FrameConnection.ask

    async def asked(self: FrameConnection, frame: bytes, timeout_ms: int) -> bytes:
        if threading.current_thread().name in {f"gateway-{number}" for number in cut}:
            raise TimeoutError
        return await real(self, frame, timeout_ms)

    async def listen() -> None:
        async with port_of(Answering()) as port:
            ports.append(port)
            ready.set()
            await asyncio.to_thread(over.wait)

    broker = threading.Thread(target=asyncio.run, args=(listen(),), daemon=True)
    broker.start()
    ready.wait(TIMEOUT_S)
    monkeypatch.setattr(FrameConnection, "ask", asked)
    policy: dict[str, object] = {"controller_quorum_fetch_timeout_ms": SOON_MS}
    try:
        with gateways(tmp_path, monkeypatch, 2, policy, **QUICK) as led:
            led.tree.put_broker(1, ports[0])
            led.start(100)
            wait_until(lambda: led.leads(100), "the first gateway to lead")
            led.start(101)
            wait_until(lambda: said(led, 100) == said(led, 101) == (1,), "both to reach the broker")
            cut.add(100)
            wait_until(lambda: led.leads(101), "the gateway to lead that reaches the broker")
            assert led.state_of(1) == "active"
            assert led.quorum_epoch == 2
    finally:
        over.set()
        broker.join(TIMEOUT_S)


def test_live_brokers_are_asked_where_they_listen_in_plain_text() -> None:
    view = ClusterView()
    secret = Listener("SECRET", "127.0.0.1", 1, "SSL")
    view.brokers = {1: live(1, 9), 2: replace(live(2, 9), listeners=(secret,)), 3: live(3, 9, "fenced")}
    assert list(serving(view, leads=True)) == [Asked(1, 7, ("127.0.0.1", 9)), Asked(2, 7, None)]
    assert list(serving(view, leads=False)) == []
