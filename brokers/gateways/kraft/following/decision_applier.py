"""Apply decisions to the parts of a gateway, once the records of those decisions can be read."""

from collections.abc import Callable, Iterator, Sequence

from brokers.gateways.kraft.following.deletions import Deletions
from brokers.gateways.kraft.following.quorum_view import QuorumView
from brokers.gateways.kraft.log.prepared import Event
from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.slices import ITEMS_PER_SLICE
from state.decisions import Answer, BrokerDecision, QuorumDecision


class SupersededError(Exception):
    """Another run of this gateway leads the quorum or has replaced this one, so this one must stop."""


class DecisionApplier:
    """Passes decisions on to the parts of ``gateway``. ``end_offset`` returns the end of the log that can be read.

    One event may have a hundred thousand decisions, so they are applied in portions. The first portion names the leader
    and the brokers that serve. It is applied in the step in which the records become readable, so a fetch never sees
    records of a leader that this gateway does not know yet.
    """

    def __init__(
        self,
        gateway: int,
        quorum_view: QuorumView,
        deletions: Deletions,
        engine: EngineClient,
        end_offset: Callable[[], int],
    ) -> None:
        self._gateway = gateway
        self._quorum_view = quorum_view
        self._deletions = deletions
        self._engine = engine
        self._end_offset = end_offset

    def apply(self, events: Sequence[Event]) -> Iterator[None]:
        """Apply the decisions on events whose records have just become readable.

        Raises ``SupersededError`` after it has handed out the answers.
        """
        end = self._end_offset()
        kinds = (QuorumDecision, BrokerDecision)
        news = [decision for event in events for decision in event.decisions if isinstance(decision, kinds)]
        former_epoch = self._quorum_view.quorum_epoch
        self._quorum_view.apply(news, end)
        if self._quorum_view.leads and self._quorum_view.quorum_epoch != former_epoch:
            self._deletions.begin_to_lead()
        yield
        left = ITEMS_PER_SLICE
        for event in events:
            for first in range(0, len(event.decisions), ITEMS_PER_SLICE):
                portion = event.decisions[first : first + ITEMS_PER_SLICE]
                self._deletions.apply(portion, end)
                self._engine.answered([decision for decision in portion if isinstance(decision, Answer)])
                left -= len(portion)
                if left <= 0:
                    left = ITEMS_PER_SLICE
                    yield
            self._engine.passed(event.seq)
        if self._quorum_view.superseded:
            raise SupersededError(f"another start of gateway {self._gateway} leads the quorum")
