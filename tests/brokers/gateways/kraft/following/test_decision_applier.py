"""How a gateway takes in decisions: the leader of the quorum at once, and the rest in portions."""

from pathlib import Path

import pytest

from brokers.gateways.kraft.following.decision_applier import DecisionApplier, SupersededError
from brokers.gateways.kraft.following.deletions import Deletions
from brokers.gateways.kraft.following.quorum_view import QuorumView
from brokers.gateways.kraft.log.prepared import Event
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.slices import ITEMS_PER_SLICE
from state.decisions import QuorumDecision, StopReplica
from state.events import ReplicaReport
from tests.brokers.gateways.kraft.decisions import BROKERS, ID, common, quorum
from tests.support.decided_bus import DecidedBus

STOPS = 5 * ITEMS_PER_SLICE


class Parts:
    """The parts of gateway 100 that decisions are applied to."""

    def __init__(self, decided: DecidedBus) -> None:
        self.reports: list[ReplicaReport] = []
        self.deletions = Deletions(self.reports.append)
        self.view = QuorumView(100, "g", lambda *_: None)
        engine = EngineClient(decided.bus, "g", Settings())
        self.applier = DecisionApplier(100, self.view, self.deletions, engine, lambda: 7)


def stop(partition: int) -> StopReplica:
    return StopReplica(**common(), topic="t", topic_id=ID, partition=partition, leader_epoch=0, delete=True, to=(1,))


@pytest.fixture
def parts(decided: DecidedBus, tmp_path: Path) -> Parts:
    return Parts(decided)


def test_a_large_event_is_applied_in_portions_and_its_leader_at_once(parts: Parts) -> None:
    events = [Event(9, [*[stop(number) for number in range(STOPS)], *BROKERS]), Event(10, [quorum(10)])]
    portions = parts.applier.apply(events)
    assert not parts.view.leads
    next(portions)
    assert parts.view.leads
    assert set(parts.view.brokers) == {1, 2, 3}
    known: list[int] = []
    for _ in portions:
        parts.reports.clear()
        parts.deletions.has_fetched(1, 1, 7)
        known.append(len(parts.reports))
    assert (max(known), sum(known)) == (ITEMS_PER_SLICE, STOPS)


def superseding(epoch: int, incarnation: str) -> QuorumDecision:
    return QuorumDecision(**common(), voter=100, incarnation=incarnation, voters=(100,), quorum_epoch=epoch)


def test_a_gateway_stops_if_another_run_of_it_led_in_between(parts: Parts) -> None:
    list(parts.applier.apply([Event(9, [quorum()])]))
    with pytest.raises(SupersededError, match="another start of gateway 100 leads"):
        list(parts.applier.apply([Event(10, [superseding(2, "h")]), Event(11, [superseding(3, "i")])]))


def test_the_deletions_from_before_a_gateway_led_are_set_aside_when_it_leads(parts: Parts) -> None:
    for _ in parts.applier.apply([Event(9, [stop(0), *BROKERS])]):
        pass
    assert not parts.deletions.unsettled.is_set()
    next(parts.applier.apply([Event(10, [quorum(10)])]))
    assert parts.deletions.unsettled.is_set()
    parts.deletions.has_fetched(1, 1, 7)
    assert parts.reports == []
