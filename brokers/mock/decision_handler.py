"""The way of decisions to the parts of a broker.

A broker that was away reads many decisions at once. Each ``leader_and_isr`` on the way would truncate a log, connect to
a former leader, and be reported, only to be replaced by the next. So decisions that a later one makes needless are
skipped.
"""

from collections.abc import Sequence

import structlog

from brokers.mock.control.lifecycle import Lifecycle
from brokers.mock.control.outbox import Outbox
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.table import Replicas
from state.decisions import AnyDecision, LeaderAndIsr, StopReplica
from state.events import TopicPartition

logger = structlog.get_logger()


def superseded(decisions: Sequence[AnyDecision], broker: int) -> frozenset[int]:
    """Return the indexes of the ``leader_and_isr`` in ``decisions`` that a later one makes needless.

    The later one has the same topic id, and both assign a replica to ``broker``. Between the two there must be no
    ``stop_replica`` of the partition, no assignment without ``broker`` and no other topic of that name. So a replica
    that was removed and added again is still stopped or deleted in between.
    """
    needless = []
    newest: dict[TopicPartition, str] = {}
    for index in range(len(decisions) - 1, -1, -1):
        decision = decisions[index]
        if isinstance(decision, LeaderAndIsr):
            where = TopicPartition(decision.topic, decision.partition)
            if broker not in decision.replicas:
                newest.pop(where, None)
            elif newest.get(where) == decision.topic_id:
                needless.append(index)
            else:
                newest[where] = decision.topic_id
        elif isinstance(decision, StopReplica):
            newest.pop(TopicPartition(decision.topic, decision.partition), None)
    return frozenset(needless)


class DecisionHandler:
    """A broker's parts, in the order in which they hear of decisions.

    Decisions go to the metadata first. Replicas act on them only once the registration is answered. By then the broker
    has heard all earlier decisions, so its replicas act on nothing stale.
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
