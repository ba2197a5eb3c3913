"""A gateway's requests to the engine: limits, order, and requests made only once."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from brokers.gateways.kraft.settings import settings_of
from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import SHARES, EventQueue, Lane, QueuedEvent, QueueFullError
from bus.interface import BusError
from state.decisions import Answer
from state.event_text import decode
from state.events import AlterIsr, AnyEvent, DeleteTopic, GatewayHeartbeat, Malformed

EVENTS_MAX = 1_000
TAKEN_TIMEOUT_S = 120.0


class MemoryBus:
    """A bus in memory that keeps the events published on it."""

    def __init__(self) -> None:
        self.open = True
        self.taken: list[AnyEvent | Malformed] = []

    def publish(self, events: Sequence[bytes]) -> int:
        self.taken += [decode(raw) for raw in events]
        return len(self.taken)


def with_a_client(story: Callable[[EngineClient, MemoryBus], Awaitable[None]], **settings: Any) -> None:
    """Run ``story`` with an engine client."""

    async def play() -> None:
        bus = MemoryBus()
        given = {"events.waiting.max": EVENTS_MAX, "answer.timeout.ms": 50} | settings
        engine = EngineClient(bus, "i", settings_of(given))  # type: ignore[arg-type]
        running = asyncio.ensure_future(engine.run())
        try:
            await story(engine, bus)
        finally:
            running.cancel()
            engine.close()

    asyncio.run(play())


def beat() -> GatewayHeartbeat:
    return GatewayHeartbeat(time_ms=1, gateway=100, incarnation="i")


def deletion(number: int) -> DeleteTopic:
    return DeleteTopic(time_ms=1, topic=f"t{number}")


def test_admin_requests_leave_room_for_brokers_and_brokers_for_the_gateway() -> None:
    queue = EventQueue(EVENTS_MAX, bytes_max=1 << 30)

    def fill(lane: Lane, size: int = 1) -> int:
        """Send events of a lane until the queue refuses one; return how many it took."""
        for count in range(EVENTS_MAX + 1):
            try:
                queue.put([queued(lane, size)], lane)
            except QueueFullError:
                return count
        raise AssertionError("no limit")

    assert [fill(lane) for lane in (Lane.ADMIN, Lane.PARTITION, Lane.BROKER, Lane.GATEWAY)] == [500, 300, 100, 100]
    queue = EventQueue(EVENTS_MAX, bytes_max=100)
    assert [fill(lane, 10) for lane in (Lane.ADMIN, Lane.PARTITION, Lane.BROKER, Lane.GATEWAY)] == [5, 3, 1, 1]


def queued(lane: Lane, size: int = 1) -> QueuedEvent:
    return QueuedEvent(b"x" * size, size, lane)


def test_the_gateways_own_events_go_first_and_no_wait_is_unbounded() -> None:
    queue = EventQueue(100_000)
    for lane in (Lane.ADMIN, Lane.PARTITION, Lane.BROKER, Lane.GATEWAY):
        queue.put([queued(lane) for _ in range(12_000)], lane)
    calls = [[one.lane for one in queue.next_call()] for _ in range(6)]
    assert calls[0][0] == Lane.GATEWAY
    seen = [set(call) for call in calls]
    assert Lane.GATEWAY in seen[2]
    assert {Lane.BROKER, Lane.PARTITION, Lane.ADMIN} <= set().union(*seen[2:6])


def test_a_full_queue_refuses_admin_requests_and_the_gateway_continues() -> None:
    async def story(engine: EngineClient, bus: MemoryBus) -> None:
        room = int(SHARES[Lane.ADMIN] * EVENTS_MAX)
        waiting = asyncio.ensure_future(engine.ask(*(deletion(number) for number in range(room)), lane=Lane.ADMIN))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match="1 more are too many"):
            await engine.ask(deletion(0), lane=Lane.ADMIN)
        engine.tell(beat(), lane=Lane.GATEWAY)
        with pytest.raises(NoAnswerError):
            await waiting
        # The publisher's thread may take longer than the answer's timeout.
        async with asyncio.timeout(TAKEN_TIMEOUT_S):
            while beat() not in bus.taken:
                await asyncio.sleep(0.01)
        # A request without an answer gives up its room.
        with pytest.raises(NoAnswerError):
            await engine.ask(deletion(0), lane=Lane.ADMIN)

    with_a_client(story)


def isr(partition_epoch: int = 1, members: tuple[int, ...] = (1,)) -> AlterIsr:
    return AlterIsr(
        time_ms=1,
        topic="t",
        partition=0,
        broker=1,
        broker_epoch=1,
        leader_epoch=1,
        partition_epoch=partition_epoch,
        isr=members,
    )


async def none_answers(engine: EngineClient, event: AlterIsr) -> None:
    with pytest.raises(NoAnswerError):
        await engine.ask_once({("isr", event.partition_epoch): event}, Lane.PARTITION)


def answer_to(event: Any) -> Answer:
    common = {"seq": 9, "controller_epoch": 1, "time_ms": 1, "reason": "REQUEST_DONE"}
    return Answer(**common, request_id=event.request_id, request="alter_isr", error="NONE", message="")


def test_a_repeated_request_waits_for_the_answer_to_the_first() -> None:
    async def story(engine: EngineClient, bus: MemoryBus) -> None:
        for _ in range(10):
            await none_answers(engine, isr())
        assert len(bus.taken) == 1
        again = asyncio.ensure_future(engine.ask_once({("isr", 1): isr()}, Lane.PARTITION))
        await asyncio.sleep(0)
        engine.answered([answer_to(bus.taken[0])])
        assert [one.error for one in await again] == ["NONE"]
        # A request that was answered may be repeated.
        await none_answers(engine, isr())
        assert len(bus.taken) == 2

    with_a_client(story)


def test_a_different_request_is_published_by_itself() -> None:
    async def story(engine: EngineClient, bus: MemoryBus) -> None:
        await none_answers(engine, isr())
        await none_answers(engine, isr(members=(1, 2)))
        await none_answers(engine, isr(partition_epoch=2))
        assert len(bus.taken) == 3

    with_a_client(story)


def test_a_request_that_the_engine_skipped_is_published_again() -> None:
    async def story(engine: EngineClient, bus: MemoryBus) -> None:
        await none_answers(engine, isr())
        engine.passed(1)
        await none_answers(engine, isr())
        assert len(bus.taken) == 2

    with_a_client(story)


def test_an_abandoned_request_is_not_published_when_the_bus_is_back() -> None:
    async def story(engine: EngineClient, bus: MemoryBus) -> None:
        def refuse(events: Sequence[bytes]) -> int:
            raise BusError("out of reach")

        taken, bus.publish = bus.publish, refuse  # type: ignore[method-assign]
        engine.tell(beat(), lane=Lane.GATEWAY)
        await asyncio.sleep(0)
        first = asyncio.ensure_future(engine.ask(deletion(1), lane=Lane.ADMIN))
        with pytest.raises(NoAnswerError):
            await first
        bus.publish = taken  # type: ignore[method-assign]
        with pytest.raises(NoAnswerError):
            await engine.ask(deletion(2), lane=Lane.ADMIN, timeout_ms=500)
        assert [type(event).__name__ for event in bus.taken] == ["GatewayHeartbeat", "DeleteTopic"]
        assert isinstance(bus.taken[1], DeleteTopic) and bus.taken[1].topic == "t2"

    with_a_client(story)


@pytest.mark.parametrize("in_a_call", [True, False])
def test_a_gateway_whose_machine_was_suspended_is_cut_off_until_the_bus_accepts_something_again(
    in_a_call: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only this clock goes on while a machine is suspended.
    now_ms = 1_000
    monkeypatch.setattr("brokers.gateways.shared.engine_client.steady_ms", lambda: now_ms)

    async def story(engine: EngineClient, bus: MemoryBus) -> None:
        def suspended(events: Sequence[bytes]) -> int:
            nonlocal now_ms
            now_ms += 60_000
            return accept(events)

        accept = bus.publish
        if in_a_call:
            bus.publish = suspended  # type: ignore[method-assign]
            await publish_one(engine)
            bus.publish = accept  # type: ignore[method-assign]
        else:
            suspended([])
        assert engine.is_cut_off
        await publish_one(engine)
        assert not engine.is_cut_off

    with_a_client(story)


async def publish_one(engine: EngineClient) -> None:
    engine.tell(beat(), lane=Lane.GATEWAY)
    async with asyncio.timeout(TAKEN_TIMEOUT_S):
        while engine.waiting != (0, 0):
            await asyncio.sleep(0)


def test_requests_that_give_up_while_the_bus_is_away_leave_nothing_in_memory() -> None:
    async def story(engine: EngineClient, bus: MemoryBus) -> None:
        def refuse(events: Sequence[bytes]) -> int:
            raise BusError("out of reach")

        bus.publish = refuse  # type: ignore[method-assign]
        engine.tell(beat(), lane=Lane.GATEWAY)
        tracemalloc.start()
        try:
            large = DeleteTopic(time_ms=1, topic="t" * 100_000)
            for request in (*[large] * 200, *[deletion(1)] * 2_000):
                asked = asyncio.ensure_future(engine.ask(request, lane=Lane.ADMIN))
                await asyncio.sleep(0)
                asked.cancel()
                await asyncio.wait([asked])
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert engine.waiting[0] == 1
        assert held_bytes < 1_500_000

    with_a_client(story)
