"""A mock broker's side of the bus: what it reports, in which order, and how it follows decisions."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from brokers.engine.committed_state import decisions_of
from brokers.mock.control.decision_feed import DecisionFeed
from brokers.mock.control.lifecycle import Lifecycle, LifecycleState
from brokers.mock.control.outbox import LogEnd, Outbox
from brokers.mock.metadata import Metadata
from brokers.mock.settings import Identity, settings_of
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from state.decisions import Answer, AnyDecision, Rejected, decode
from state.events import BrokerConnectionLost, TopicPartition
from state.reason import Reason
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

PLACE = TopicPartition("t", 0)


def published(bus: EmbeddedBus) -> list[dict[str, object]]:
    return [json.loads(entry.raw) for entry in bus.read(0, bus.last_seq())]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.005)


def lost(epoch: int) -> BrokerConnectionLost:
    return BrokerConnectionLost(time_ms=now_ms(), broker=1, broker_epoch=epoch)


def test_an_event_is_never_overtaken_by_a_later_log_end(tmp_path: Path) -> None:
    """The rules judge an ISR change by the log ends reported before it."""
    bus = EmbeddedBus(tmp_path / "bus.db")
    ends = iter(range(100))

    async def scenario() -> None:
        outbox = Outbox(1, bus, settings_of({"watermark.interval.ms": 1}))
        outbox.log_end_of = lambda place: LogEnd("id", 5, next(ends), 0)
        running = asyncio.create_task(outbox.run())
        for epoch in range(5):
            outbox.log_end_changed(PLACE)
            outbox.send(lost(epoch))
            await until(lambda epoch=epoch: outbox.reported_end_offset(PLACE, 5) == epoch)
        running.cancel()
        assert outbox.reported_end_offset(PLACE, 6) is None
        outbox.close()

    asyncio.run(scenario())
    events = published(bus)
    assert [e.get("broker_epoch") for e in events if e["kind"] == "broker_connection_lost"] == list(range(5))
    kinds = [e["kind"] for e in events]
    assert kinds == ["broker_connection_lost", "log_end_offset"] * 5
    bus.close()


def test_log_ends_are_collected_and_reported_once(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")

    async def scenario() -> None:
        outbox = Outbox(1, bus, settings_of({"watermark.interval.ms": 100}))
        grown: list[int] = []
        outbox.log_end_of = lambda place: LogEnd("id", 0, len(grown), 0)
        running = asyncio.create_task(outbox.run())
        for number in range(59):
            grown.append(number)
            outbox.log_end_changed(PLACE)
            await asyncio.sleep(0.005)
        await until(lambda: outbox.reported_end_offset(PLACE, 0) == 59)
        outbox.log_end_changed(PLACE)
        await asyncio.sleep(0.15)
        running.cancel()
        outbox.close()

    began_s = time.monotonic()
    asyncio.run(scenario())
    intervals = (time.monotonic() - began_s) / 0.1
    ends = [e["log_end_offset"] for e in published(bus)]
    assert ends[-1] == 59
    assert len(ends) == len(set(ends)) <= intervals + 1
    bus.close()


def refusal_of(raw: bytes) -> Rejected:
    common = {"seq": 1, "controller_epoch": 1, "time_ms": 0, "reason": Reason.TIME_AHEAD}
    return Rejected(**common, raw=raw.decode(), field="time_ms", message="it is far ahead")


def heartbeat_answer(error: str, broker: int = 1) -> Answer:
    common = {"seq": 2, "controller_epoch": 1, "time_ms": 0, "reason": Reason.REQUEST_DONE}
    return Answer(**common, request_id="beat", request="broker_heartbeat", error=error, message="", broker=broker)


def test_a_refused_log_end_is_sent_again_once_a_heartbeat_is_taken(tmp_path: Path) -> None:
    """The log does not grow in between; the clock was wrong when the last record was appended."""
    bus = EmbeddedBus(tmp_path / "bus.db")

    async def scenario() -> None:
        outbox = Outbox(1, bus, settings_of({}))
        outbox.log_end_of = lambda place: LogEnd("id", 5, 9, 0)
        outbox.log_end_changed(PLACE)
        await outbox.flush()
        outbox.apply(refusal_of(bus.read(0, 1)[0].raw))
        assert outbox.reported_end_offset(PLACE, 5) is None, "what was refused was not reported"
        assert outbox.has_refused
        for useless in (heartbeat_answer("INVALID_REQUEST"), heartbeat_answer("NONE", broker=2)):
            outbox.apply(useless)
            await outbox.flush()
        assert len(published(bus)) == 1, "the engine would refuse it again"
        outbox.apply(heartbeat_answer("NONE"))
        await outbox.flush()
        assert [event["log_end_offset"] for event in published(bus)] == [9, 9]
        assert outbox.reported_end_offset(PLACE, 5) == 9
        assert not outbox.has_refused
        outbox.close()

    asyncio.run(scenario())
    bus.close()


def test_a_refusal_of_an_earlier_or_another_brokers_log_end_has_no_effect(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    ends = iter((8, 9))

    async def scenario() -> None:
        outbox = Outbox(1, bus, settings_of({}))
        outbox.log_end_of = lambda place: LogEnd("id", 5, next(ends), 0)
        for _ in range(2):
            outbox.log_end_changed(PLACE)
            await outbox.flush()
        earlier, last = (entry.raw for entry in bus.read(0, 2))
        outbox.apply(refusal_of(earlier))
        outbox.apply(refusal_of(last.replace(b'"broker":1', b'"broker":2')))
        outbox.apply(refusal_of(b"no event"))
        assert outbox.reported_end_offset(PLACE, 5) == 9
        assert not outbox.has_refused
        outbox.close()

    asyncio.run(scenario())
    bus.close()


@pytest.mark.parametrize("refused", [False, True])
def test_a_heartbeat_asks_for_an_answer_while_something_refused_waits(tmp_path: Path, refused: bool) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")

    async def scenario() -> None:
        outbox, settings = Outbox(1, bus, settings_of({})), settings_of({})
        lifecycle = Lifecycle(Identity(broker=1, bus="", directory=tmp_path), outbox, settings, -1)
        lifecycle.state, lifecycle.broker_epoch = LifecycleState.running, 7
        outbox.log_end_of = lambda place: LogEnd("id", 5, 9, 0)
        outbox.log_end_changed(PLACE)
        await outbox.flush()
        if refused:
            outbox.apply(refusal_of(bus.read(0, 1)[0].raw))
        running = asyncio.create_task(lifecycle.run())
        await asyncio.sleep(0)
        await outbox.flush()
        running.cancel()
        outbox.close()

    asyncio.run(scenario())
    beat = published(bus)[-1]
    assert beat["kind"] == "broker_heartbeat"
    assert (beat.get("request_id") is not None) is refused
    bus.close()


@pytest.mark.parametrize(
    ("error", "registered", "state"),
    [
        ("STALE_BROKER_EPOCH", 7, LifecycleState.running),
        ("STALE_BROKER_EPOCH", 8, LifecycleState.registering),
        ("BROKER_ID_NOT_REGISTERED", None, LifecycleState.registering),
    ],
)
def test_a_broker_whose_epoch_is_the_registered_one_stays_registered(
    tmp_path: Path, error: str, registered: int | None, state: LifecycleState
) -> None:
    """An earlier process of the same id may have spoken in its own epoch."""
    bus = EmbeddedBus(tmp_path / "bus.db")
    settings = settings_of({})
    outbox = Outbox(1, bus, settings)
    lifecycle = Lifecycle(Identity(broker=1, bus="", directory=tmp_path), outbox, settings, -1)
    lifecycle.state, lifecycle.broker_epoch = LifecycleState.running, 7
    answer = heartbeat_answer(error)
    lifecycle.apply(answer if registered is None else msgspec.structs.replace(answer, broker_epoch=registered))
    assert lifecycle.state is state
    outbox.close()
    bus.close()


@pytest.fixture
def decided(tmp_path: Path) -> EmbeddedBus:
    """A bus with two brokers and a topic, all decided."""
    bus, engine = EmbeddedBus(tmp_path / "bus.db"), RulesEngine()
    engine.start(bus.path, broker_session_timeout_ms=3_600_000)
    for broker in (1, 2):
        register = {"kind": "broker_register", "broker": broker, "incarnation": f"i{broker}", "time_ms": now_ms()}
        epoch = bus.publish([msgspec.json.encode(register)])
        beat = {"broker_epoch": epoch, "want_fence": False, "want_shutdown": False}
        bus.publish([msgspec.json.encode({"kind": "broker_heartbeat", "broker": broker, "time_ms": now_ms(), **beat})])
    create = {"kind": "create_topic", "topic": "t", "assignment": {"0": [1, 2], "1": [2, 1]}, "time_ms": now_ms()}
    bus.publish([msgspec.json.encode(create)])
    end = {"kind": "log_end_offset", "topic": "t", "partition": 0, "leader_epoch": 0, "log_end_offset": 7}
    bus.publish([msgspec.json.encode({**end, "broker": broker, "time_ms": now_ms()}) for broker in (1, 2)])
    wait_until(lambda: Metadata.high_watermark(followed(bus), PLACE) == 7, "the high watermark to be decided")
    engine.stop()
    return bus


def followed(bus: EmbeddedBus) -> Metadata:
    metadata = Metadata()
    for body in bus.decisions((0, -1), 10_000):
        metadata.apply(decode(body.body))
    return metadata


def known(metadata: Metadata) -> object:
    partitions = [
        (p.topic, p.topic_id, p.partition, p.leader, p.leader_epoch, p.isr, p.partition_epoch, p.replicas)
        for p in metadata.all_partitions()
    ]
    brokers = [(b.broker, b.broker_epoch, b.incarnation, b.state) for b in metadata.brokers.values()]
    return sorted(partitions), sorted(brokers), sorted(metadata.topics), metadata.high_watermark(PLACE)


def test_an_image_says_what_the_decisions_said(decided: EmbeddedBus) -> None:
    from_image = Metadata()
    for decision in decisions_of(decided.image()):
        from_image.apply(decision)
    assert known(from_image) == known(followed(decided))
    decided.close()


def test_the_feed_continues_where_the_image_ends(decided: EmbeddedBus) -> None:
    got: list[AnyDecision] = []
    feed = DecisionFeed(decided, got.extend, settings_of({}))
    feed.start()
    from_image = len(got)

    async def follow() -> None:
        running = asyncio.create_task(feed.run())
        await asyncio.sleep(0.1)
        assert len(got) == from_image, "all that is in the image came with it"
        engine = RulesEngine()
        engine.start(decided.path)
        request = {"kind": "alter_config", "entity": "cluster", "config": {"min.insync.replicas": "2"}}
        decided.publish([msgspec.json.encode({**request, "request_id": "r", "time_ms": now_ms()})])
        await until(lambda: any(getattr(d, "request_id", None) == "r" for d in got))
        engine.stop()
        running.cancel()

    asyncio.run(follow())
    fresh = [(d.seq, d.index) for d in got[from_image:]]
    assert fresh == sorted(set(fresh))
    decided.close()


def test_other_processes_writes_are_noticed(tmp_path: Path) -> None:
    one, other = EmbeddedBus(tmp_path / "bus.db"), EmbeddedBus(tmp_path / "bus.db")
    assert one.changed()
    assert not one.changed()
    other.publish([b"{}"])
    assert one.changed()
    assert not one.changed()
    one.close()
    other.close()


def test_settings_name_what_is_wrong() -> None:
    assert settings_of({"broker.heartbeat.interval.ms": "300", "broker.session.timeout.ms": "1"}) == settings_of(
        {"broker.heartbeat.interval.ms": 300}
    )
    with pytest.raises(msgspec.ValidationError, match="nonsense"):
        settings_of({"nonsense": "1"})
