"""Find the decisions that a later one makes needless, so that a broker that was away catches up quickly.

Such a broker reads many decisions at once. Each ``leader_and_isr`` on the way would truncate a log, connect to a leader
that is no longer one, and be reported, only to be replaced by the next.
"""

from collections.abc import Sequence

from state.decisions import AnyDecision, LeaderAndIsr, StopReplica
from state.events import TopicPartition


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
