"""Heartbeats of a gateway: what they say of the time in which it did not run."""

import asyncio
from pathlib import Path

import pytest

from brokers.engine.engine_client import EngineClient
from brokers.engine.event_queue import Lane, QueueFullError
from brokers.gateways.zk.heartbeats import Heartbeats
from brokers.gateways.zk.settings import Settings
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from state.event_text import decode
from state.events import GatewayHeartbeat
from tests.support.waiting import TIMEOUT_S


def test_lateness_that_a_full_queue_refused_is_told_by_the_next_heartbeat(tmp_path: Path) -> None:
    async def told(bus: EmbeddedBus) -> list[int]:
        engine = EngineClient(bus, "i", Settings(events_waiting_max=100))
        heartbeats = Heartbeats(engine, 100, "i")
        other = GatewayHeartbeat(time_ms=now_ms(), gateway=101, incarnation="i")
        with pytest.raises(QueueFullError):
            while True:
                engine.tell(other, lane=Lane.GATEWAY)
        heartbeats.send(700)
        publishing = asyncio.create_task(engine.run())
        async with asyncio.timeout(TIMEOUT_S):
            while engine.waiting[0]:
                await asyncio.sleep(0.01)
            last = bus.last_seq()
            heartbeats.send(300)
            heartbeats.send(0)
            while bus.last_seq() < last + 2:
                await asyncio.sleep(0.01)
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        engine.close()
        beats = [decode(entry.raw) for entry in bus.read(last, bus.last_seq())]
        return [beat.late_ms for beat in beats if isinstance(beat, GatewayHeartbeat)]

    bus = EmbeddedBus(tmp_path / "bus.db")
    assert asyncio.run(told(bus)) == [1_000, 0]
    bus.close()
