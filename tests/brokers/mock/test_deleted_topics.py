"""A mock broker's replicas of a topic that is being deleted, or is gone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.mock.control.outbox import Outbox
from brokers.mock.log.directory import LogDirectory
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.table import Replicas
from brokers.mock.settings import Settings
from bus.embedded import EmbeddedBus
from state.decisions import TopicDecision
from state.ids import NO_LEADER
from state.reason import Reason
from tests.brokers.mock.test_partition import BASE, PLACE, decided_leader


class BrokerReplicas:
    """A broker's replicas and metadata, to which each decision is applied."""

    def __init__(self, path: Path) -> None:
        self.path = path / "1"
        settings, self.metadata = Settings(), Metadata()
        self._bus = EmbeddedBus(path / "bus.db")
        self._outbox = Outbox(1, self._bus, settings)
        directory = LogDirectory(self.path)
        self.replicas = Replicas(1, directory, self.metadata, self._outbox, settings)

    def tell(self, decision: object) -> None:
        self.metadata.apply(decision)  # type: ignore[arg-type]
        self.replicas.apply(decision)  # type: ignore[arg-type]

    def log_ends(self) -> int:
        """Count the log ends that were reported to the engine."""
        asyncio.run(self._outbox.flush())
        return sum(b'"log_end_offset"' in entry.raw for entry in self._bus.read(0, self._bus.last_seq()))

    def close(self) -> None:
        self.replicas.close()
        self._outbox.close()
        self._bus.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerReplicas]:
    broker = BrokerReplicas(tmp_path)
    yield broker
    broker.close()


def topic(state: str, topic_id: str = "id") -> TopicDecision:
    return TopicDecision(
        seq=9,
        controller_epoch=BASE.controller_epoch,
        time_ms=0,
        reason=Reason.TOPIC_DELETED,
        topic=PLACE.topic,
        topic_id=topic_id,
        state=state,
        config={},
    )


def test_nothing_remains_of_a_deleted_topic(broker: BrokerReplicas) -> None:
    """The former incarnation reported the deletion, so it is not asked for again; this one has started a new log."""
    broker.tell(decided_leader(NO_LEADER, 1))
    broker.tell(topic("deleting"))
    assert (broker.path / "t-0").is_dir()
    broker.tell(topic("deleted"))
    assert PLACE not in broker.replicas.partitions
    assert not list(broker.path.glob("t-0*"))


def test_deleting_a_former_topic_spares_its_successor(broker: BrokerReplicas) -> None:
    broker.tell(decided_leader(1, 0))
    broker.tell(topic("deleted", topic_id="another"))
    assert PLACE in broker.replicas.partitions
    assert (broker.path / "t-0").is_dir()


def test_log_ends_are_reported_while_a_deletion_waits(broker: BrokerReplicas) -> None:
    """The deletion waits for a reassignment, which ends when the added replicas have caught up."""
    broker.tell(decided_leader(1, 0))
    broker.tell(topic("ineligible"))
    assert broker.log_ends() == 1


def test_no_log_end_is_reported_for_a_topic_that_is_being_deleted(broker: BrokerReplicas) -> None:
    broker.tell(decided_leader(NO_LEADER, 1))
    broker.tell(topic("deleting"))
    assert broker.log_ends() == 0
