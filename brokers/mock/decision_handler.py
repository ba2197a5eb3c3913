"""Hand each decision to the parts of a broker."""

from collections.abc import Sequence

import structlog

from brokers.mock.control.coalesce import superseded
from brokers.mock.control.lifecycle import Lifecycle
from brokers.mock.control.outbox import Outbox
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.table import Replicas
from state.decisions import AnyDecision

logger = structlog.get_logger()


class DecisionHandler:
    """A broker's parts, in the order in which they hear of decisions.

    Decisions go to the metadata first. The replicas act on them only once the registration is answered. By then the
    broker has heard everything that was decided before, so the replicas act on nothing stale.
    """

    def __init__(
        self, broker: int, metadata: Metadata, lifecycle: Lifecycle, outbox: Outbox, replicas: Replicas
    ) -> None:
        self._broker = broker
        self._metadata = metadata
        self._lifecycle = lifecycle
        self._outbox = outbox
        self._replicas = replicas
        self._coalesced = 0
        # Whether the replicas act on decisions.
        self.is_acting = False

    def apply(self, decisions: Sequence[AnyDecision]) -> None:
        """Handle decisions that were read together."""
        needless = superseded(decisions, self._broker) if self.is_acting else frozenset()
        for place, decision in enumerate(decisions):
            self._metadata.apply(decision)
            self._lifecycle.apply(decision)
            if self.is_acting:
                self._replicas.set_broker_epoch(self._lifecycle.broker_epoch)
                self._outbox.apply(decision)
                if place in needless:
                    self._replicas.skip(decision)
                else:
                    self._replicas.apply(decision)
        if needless:
            self._coalesced += len(needless)
            logger.info("older decisions skipped", count=len(needless), of=len(decisions), in_all=self._coalesced)
