"""Snapshots of a bus on Kafka that two jobs write at once, because one of them was held up."""

from typing import Any

import pytest

from bus.interface import Image, Page
from bus.kafka.bus import KafkaBus
from bus.kafka.connection import TRANSACTION_TIMEOUT_MS, Connection
from bus.kafka.snapshots import Snapshots
from tests.support.waiting import wait_until_equal

pytestmark = pytest.mark.kafka_bus


def image(seq: int) -> Image:
    return Image(seq, [Page(0, 0, b"%d" % seq)])


@pytest.fixture
def snapshots(bus: KafkaBus) -> Snapshots:
    return Snapshots(Connection(bus.address))


def seqs(snapshots: Snapshots) -> list[int]:
    return [one.seq for one in snapshots.listed()]


def test_a_snapshot_that_another_job_took_during_the_copy_stays(
    bus: KafkaBus, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    superseded = Connection(bus.address)
    producer = superseded.producer

    def held_up(**settings: Any) -> Any:
        snapshots.write(image(20), 2)
        return producer(**settings)

    monkeypatch.setattr(superseded, "producer", held_up)
    assert Snapshots(superseded).write(image(10), 1)
    assert seqs(snapshots) == [10, 20]
    assert [snapshots.read(seq) for seq in (10, 20)] == [image(10), image(20)]


def test_an_older_state_behind_a_newer_one_waits_with_it(snapshots: Snapshots) -> None:
    for seq in (20, 10, 30):
        snapshots.write(image(seq), seq)
    assert snapshots.drop(15) == 0, "retention goes on as long as anything is removed"
    assert seqs(snapshots) == [10, 20, 30]
    assert snapshots.drop(25) == 2
    wait_until_equal(lambda: seqs(snapshots), [30], "the others to be removed")
    assert snapshots.drop(25) == 0
    assert snapshots.drop(31) == 1
    assert snapshots.drop(31) == 0


def test_a_snapshot_may_take_as_long_to_write_as_a_batch(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(bus.address)
    producer, given = connection.producer, dict[str, Any]()

    def noted(**settings: Any) -> Any:
        given.update(settings)
        return producer(**settings)

    monkeypatch.setattr(connection, "producer", noted)
    assert Snapshots(connection).write(image(10), 1)
    assert given["message.timeout.ms"] == TRANSACTION_TIMEOUT_MS
    assert given["queue.buffering.max.kbytes"] < 1024 * 1024
