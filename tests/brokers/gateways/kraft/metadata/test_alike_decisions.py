"""Decisions that come as columns: a gateway makes the same of them as of decisions one by one."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from brokers.engine.alike_decisions import AlikeDecisions, GivenDecision, one_by_one
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.gateways.shared.whole_events import whole_events
from bus.interface import AFTER_ALL_OF, DecidedColumns
from state.decisions import BrokerDecision, HighWatermark, LeaderAndIsr, StopReplica, decode
from tests.brokers.gateways.kraft.storages import BEGINNING, START_MS, beats, event, topic
from tests.support.decided_bus import DecidedBus

ALL = 100_000
# More than a run has, and together more than a block.
WIDE, OTHERS = 1_200, [f"t{number}" for number in range(40)]


@pytest.fixture
def decided(tmp_path: Path) -> Iterator[DecidedBus]:
    """A bus with the decisions on a broker that is lost and returns, on watermarks and on a deletion."""
    decided = DecidedBus(tmp_path / "bus.db")
    started = event("controller_started", controller_id="c", controller_epoch=1)
    decided.take([*BEGINNING, started, topic("wide", WIDE), *[topic(name, 100) for name in OTHERS]])
    decided.take(beats((3, 4), want_fence=True))
    decided.take(beats((3, 4)))
    topics = [decided.state.topics.get(name) for name in OTHERS]
    logs = [
        {"topic": one.topic, "partitions": [[held.partition, held.leader_epoch, 9] for held in one.partitions]}
        for one in topics
        if one is not None
    ]
    for broker, epoch in ((1, 2), (2, 3), (3, 4)):
        decided.take([event("log_end_offsets", broker=broker, broker_epoch=epoch, topics=logs)])
    decided.take([event("tick", START_MS + 1, controller_epoch=1)])
    decided.take([event("delete_topic", topic="t1", request_id="d")])
    yield decided
    decided.close()


def events(decided: DecidedBus) -> list[list[GivenDecision]]:
    found: list[list[GivenDecision]] = []
    while some := whole_events(decided.bus, found[-1][0].seq if found else 0):
        found += some
    return found


def test_a_gateway_reads_every_decision(decided: DecidedBus) -> None:
    written = [decode(one.body) for one in decided.bus.decisions((0, -1), ALL)]
    assert [*one_by_one(chain.from_iterable(events(decided)))] == written


def test_those_that_come_in_large_numbers_stay_columns(decided: DecidedBus) -> None:
    given = [one for some in events(decided) for one in some]
    alike = [one for one in given if isinstance(one, AlikeDecisions)]
    assert {one.kind for one in alike} == {LeaderAndIsr, HighWatermark}
    # A gateway acts on each of these.
    assert sum(isinstance(one, StopReplica) for one in given) > 0
    returned = max(one.seq for one in given if isinstance(one, BrokerDecision))
    assert sum(len(one.rows) for one in alike if one.seq == returned) == WIDE + 100 * len(OTHERS)


def test_they_become_the_same_records_and_the_same_image(decided: DecidedBus) -> None:
    image = MetadataImage()
    for some in events(decided):
        translated = translate(image, some)
        assert translated == translate(image, [*one_by_one(some)])
        image = translated.image
    assert len(image.topics) == len(OTHERS)


def test_a_reader_that_starts_within_a_block_gets_the_rest_of_it(decided: DecidedBus) -> None:
    everything = decided.bus.decisions((0, -1), ALL)
    first = next(one for one in decided.bus.decided_columns((0, -1), ALL) if isinstance(one, DecidedColumns))
    place = (first.seq, first.idx + 7)
    rest = [one for one in decided.bus.decided_columns(place, 1) if one.seq == first.seq]
    assert rest == [one for one in everything if place < (one.seq, one.idx)][: len(rest)]
    assert len(rest) > 1
    assert decided.bus.decided_columns((everything[-1].seq, AFTER_ALL_OF), 1) == []
