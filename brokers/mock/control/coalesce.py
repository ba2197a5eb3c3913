"""Fold what a broker that was away has yet to do: of several decisions on one replica the newest is enough."""

from collections.abc import Sequence

from state.decisions import AnyDecision, LeaderAndIsr, StopReplica
from state.events import TopicPartition


def superseded(decisions: Sequence[AnyDecision], broker: int) -> frozenset[int]:
    """Give the places of those ``leader_and_isr`` in ``decisions`` that a later one makes needless.

    Later, it is of the same topic id, and both assign a replica to ``broker``. Nothing is folded across a
    ``stop_replica`` of the partition, an assignment without ``broker``, or another topic of the same name:
    a replica that was removed and added again is still stopped, or deleted, in between.
    """
    needless = []
    newest: dict[TopicPartition, str] = {}
    for place in range(len(decisions) - 1, -1, -1):
        decision = decisions[place]
        if isinstance(decision, LeaderAndIsr):
            where = TopicPartition(decision.topic, decision.partition)
            if broker not in decision.replicas:
                newest.pop(where, None)
            elif newest.get(where) == decision.topic_id:
                needless.append(place)
            else:
                newest[where] = decision.topic_id
        elif isinstance(decision, StopReplica):
            newest.pop(TopicPartition(decision.topic, decision.partition), None)
    return frozenset(needless)
