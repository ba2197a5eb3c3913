"""Report the logs that brokers delete because the metadata log tells them to.

A broker of Kafka 4 reports no deletion: it has heard of one when it fetches what comes after it.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from isrflow.bus.embedded import now_ms
from isrflow.bus.image import Held
from isrflow.state.decisions import AnyDecision, StopReplica
from isrflow.state.events import ReplicaReport
from isrflow.state.partition import ReplicaState

WHILE_DELETING = -2
_STARTED = ReplicaState.ReplicaDeletionStarted


class Doomed(NamedTuple):
    """Name a log that is to go."""

    topic: str
    partition: int
    leader_epoch: int


class Deletions:
    """Hold what brokers have yet to hear of; ``tell`` publishes the reports."""

    def __init__(self, tell: Callable[[ReplicaReport], None]) -> None:
        self._tell = tell
        self._awaited: dict[int, dict[Doomed, int]] = {}

    def began_with(self, held: Held, log_end: int) -> None:
        """Take up the deletions that were under way: they are told of before ``log_end``."""
        for topic in held.topics:
            for partition in topic.partitions:
                epoch = WHILE_DELETING if topic.shown_state.name == "deleting" else partition.leader_epoch
                doomed = Doomed(topic.topic, partition.partition, epoch)
                for replica, state in zip(partition.replicas, partition.replica_states, strict=True):
                    if state == _STARTED:
                        self._await(replica, doomed, log_end)
                for removed in partition.removed:
                    if removed.state == _STARTED:
                        self._await(removed.broker, doomed, log_end)

    def heard(self, decisions: Iterable[AnyDecision], log_end: int) -> None:
        """Take in what one event brought; the metadata log tells of it up to ``log_end``."""
        for decision in decisions:
            if isinstance(decision, StopReplica) and decision.delete:
                doomed = Doomed(decision.topic, decision.partition, decision.leader_epoch)
                for broker in decision.to:
                    self._await(broker, doomed, log_end)

    def _await(self, broker: int, doomed: Doomed, log_end: int) -> None:
        self._awaited.setdefault(broker, {})[doomed] = log_end

    def has_fetched(self, broker: int, broker_epoch: int, offset: int) -> None:
        """Report what a broker has heard of by fetching from ``offset``."""
        awaited = self._awaited.get(broker)
        if not awaited:
            return
        for doomed in [doomed for doomed, log_end in awaited.items() if log_end <= offset]:
            del awaited[doomed]
            self._tell(
                ReplicaReport(
                    time_ms=now_ms(),
                    topic=doomed.topic,
                    partition=doomed.partition,
                    broker=broker,
                    broker_epoch=broker_epoch,
                    leader_epoch=doomed.leader_epoch,
                    outcome="deleted",
                )
            )
