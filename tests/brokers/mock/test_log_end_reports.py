"""A mock broker reports several log ends in one event."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.mock.control.outbox import LogEnd, Outbox, is_report_of, together
from brokers.mock.settings import settings_of
from bus.embedded import EmbeddedBus
from controller_logic.raw_text import RAW_CHARS_MAX, shown
from state.canonical import RESULTS_MAX
from state.decisions import Answer, Rejected
from state.events import LogEndOffset, LogEndOffsets, TopicPartition
from state.reason import Reason

PLACES = [TopicPartition(topic, number) for topic in "tu" for number in range(2)]


def rejection(raw: bytes, reason: Reason, epoch: int = 1) -> Rejected:
    return Rejected(
        seq=1, controller_epoch=epoch, time_ms=0, reason=reason, raw=shown(raw), field="kind", message="it is refused"
    )


def with_outbox(tmp_path: Path, scenario: Callable[[Outbox, EmbeddedBus], Awaitable[None]]) -> None:
    """Run a scenario with the outbox of broker 1, whose logs all end at 9."""

    async def run() -> None:
        bus = EmbeddedBus(tmp_path / "bus.db")
        outbox = Outbox(1, bus, settings_of({}))
        outbox.broker_epoch = 3
        outbox.log_end_of = lambda place: LogEnd(f"id-{place.topic}", 5, 9, 0)
        await scenario(outbox, bus)
        outbox.close()
        bus.close()

    asyncio.run(run())


async def flushed(outbox: Outbox, bus: EmbeddedBus, places: list[TopicPartition]) -> list[dict[str, Any]]:
    """Return what the outbox publishes after the logs of some replicas have grown."""
    before = bus.last_seq()
    for place in places:
        outbox.log_end_changed(place)
    await outbox.flush()
    return [json.loads(entry.raw) for entry in bus.read(before, bus.last_seq())]


def test_several_log_ends_are_one_event_and_one_is_a_single_report(tmp_path: Path) -> None:
    async def scenario(outbox: Outbox, bus: EmbeddedBus) -> None:
        [report] = await flushed(outbox, bus, PLACES[:3])
        assert (report["kind"], report["broker"], report["broker_epoch"]) == ("log_end_offsets", 1, 3)
        assert report["topics"] == [
            {"topic": "t", "partitions": [[0, 5, 9], [1, 5, 9]], "topic_id": "id-t"},
            {"topic": "u", "partitions": [[0, 5, 9]], "topic_id": "id-u"},
        ]
        [single] = await flushed(outbox, bus, PLACES)
        assert (single["kind"], single["topic"], single["partition"]) == ("log_end_offset", "u", 1)

    with_outbox(tmp_path, scenario)


def test_a_report_that_is_refused_for_its_time_waits_for_a_heartbeat(tmp_path: Path) -> None:
    async def scenario(outbox: Outbox, bus: EmbeddedBus) -> None:
        await flushed(outbox, bus, PLACES)
        outbox.apply(rejection(bus.read(0, 1)[0].raw, Reason.TIME_AHEAD))
        assert outbox.has_refused
        assert await flushed(outbox, bus, []) == []
        common = {"seq": 2, "controller_epoch": 1, "time_ms": 0, "reason": Reason.REQUEST_DONE}
        outbox.apply(
            Answer(**common, request_id="beat", request="broker_heartbeat", error="NONE", message="", broker=1)
        )
        [report] = await flushed(outbox, bus, [])
        assert report["kind"] == "log_end_offsets"

    with_outbox(tmp_path, scenario)


@pytest.mark.parametrize(
    "change",
    [
        (b'"broker":1', b'"broker":2'),
        (b'"broker":1', b'"broker":' + b"9" * 5_000),
        (b"log_end_offsets", b"replica_report"),
        (b"{", b"["),
    ],
)
def test_the_rejection_of_something_else_has_no_effect(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    async def scenario(outbox: Outbox, bus: EmbeddedBus) -> None:
        await flushed(outbox, bus, PLACES)
        raw = bus.read(0, 1)[0].raw.replace(*change)
        outbox.apply(rejection(raw, Reason.TIME_AHEAD))
        assert await flushed(outbox, bus, PLACES) == []

    with_outbox(tmp_path, scenario)


def _ends(count: int) -> list[LogEndOffset]:
    return [
        LogEndOffset(
            time_ms=1, topic="t" * 200, partition=n, broker=1, leader_epoch=0, log_end_offset=n, broker_epoch=7
        )
        for n in range(count)
    ]


def test_a_report_has_as_many_rows_as_the_rules_take() -> None:
    reports = together(_ends(RESULTS_MAX + 1))
    rows = [len(topic.partitions) for one in reports if isinstance(one, LogEndOffsets) for topic in one.topics]
    assert rows == [RESULTS_MAX, 1]


def test_a_report_on_kafka_is_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(outbox: Outbox, bus: EmbeddedBus) -> None:
        assert {one["kind"] for one in await flushed(outbox, bus, PLACES)} == {"log_end_offset"}

    monkeypatch.setattr(EmbeddedBus, "kind", "kafka")
    with_outbox(tmp_path, scenario)


def test_a_long_report_is_known_by_its_beginning() -> None:
    raw = b'{"kind":"log_end_offsets","time_ms":1,"request_id":null,"broker":1,"broker_epoch":7,"topics":[%b]}'
    text = shown(raw % (b" " * RAW_CHARS_MAX))
    assert is_report_of(text, 1)
    assert not is_report_of(text, 2)
