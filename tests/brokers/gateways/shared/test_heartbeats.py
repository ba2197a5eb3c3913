"""A gateway's start and its heartbeats: how they report a time in which it did not run, and what is repeated."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from brokers.gateways.shared.gateway_settings import GatewaySettings
from brokers.gateways.shared.heartbeats import Heartbeats
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from state.decisions import Rejected
from state.event_text import decode
from state.events import GatewayHeartbeat, GatewayStarted
from state.reason import Reason
from state.shadow import ShadowError
from state.stored.codec import LevelError
from tests.support.waiting import TIMEOUT_S


def test_lateness_that_a_full_queue_refused_is_told_by_the_next_heartbeat(tmp_path: Path) -> None:
    async def told(bus: EmbeddedBus) -> list[int]:
        engine = EngineClient(bus, "i", GatewaySettings(events_waiting_max=100))
        heartbeats = Heartbeats(engine, 100, "i", (100,), is_kraft=False)
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


def rejected(incarnation: str, reason: Reason) -> Rejected:
    started = GatewayStarted(time_ms=1, gateway=100, incarnation=incarnation, voters=(100,))
    raw = msgspec.json.encode(started).decode()
    return Rejected(seq=1, controller_epoch=1, time_ms=1, reason=reason, raw=raw, field="time_ms", message="")


def test_a_gateway_that_does_not_support_the_level_ends(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    engine = EngineClient(bus, "i", GatewaySettings())
    heartbeats = Heartbeats(engine, 100, "i", (100,), is_kraft=False)
    told = replace(rejected("another", Reason.REQUEST_REFUSED), field="level", message="the level is 2")
    heartbeats.hear([told])
    with pytest.raises(LevelError, match="the level is 2"):
        heartbeats.hear([told, replace(told, raw=rejected("i", Reason.REQUEST_REFUSED).raw)])
    engine.close()
    bus.close()


def test_a_gateway_on_the_shadow_of_a_cluster_ends(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    engine = EngineClient(bus, "i", GatewaySettings())
    heartbeats = Heartbeats(engine, 100, "i", (100,), is_kraft=True)
    with pytest.raises(ShadowError, match="only observes it"):
        heartbeats.hear([replace(rejected("i", Reason.SHADOW_REFUSED), message="it only observes it")])
    engine.close()
    bus.close()


def test_a_start_that_was_refused_for_its_time_is_told_again(tmp_path: Path) -> None:
    """The clock was far ahead when the gateway started."""

    async def told(bus: EmbeddedBus) -> list[str]:
        engine = EngineClient(bus, "i", GatewaySettings())
        publishing = asyncio.create_task(engine.run())
        heartbeats = Heartbeats(engine, 100, "i", (100,), is_kraft=False)
        heartbeats.start()
        heartbeats.hear([rejected("another", Reason.TIME_AHEAD), rejected("i", Reason.REQUEST_REFUSED)])
        heartbeats.send(0)
        heartbeats.hear([rejected("i", Reason.TIME_AHEAD)])
        heartbeats.send(0)
        heartbeats.send(0)
        async with asyncio.timeout(TIMEOUT_S):
            while engine.waiting[0]:
                await asyncio.sleep(0.01)
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        engine.close()
        return [type(decode(entry.raw)).__name__ for entry in bus.read(0, bus.last_seq())]

    bus = EmbeddedBus(tmp_path / "bus.db")
    beat, start = "GatewayHeartbeat", "GatewayStarted"
    assert asyncio.run(told(bus)) == [start, beat, start, beat, beat]
    bus.close()
