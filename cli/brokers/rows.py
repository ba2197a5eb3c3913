"""Brokers as commands show them."""

from collections import Counter
from typing import Any

from cli.committed import Committed
from cli.errors import Refused
from state.broker import Broker
from state.view import brokers_of


def rows_of(found: Committed) -> list[dict[str, Any]]:
    """Return each broker with the number of partitions that it leads and holds."""
    partitions = [partition for topic in found.topics.values() for partition in topic.partitions]
    leads = Counter(partition.leader for partition in partitions)
    holds = Counter(replica for partition in partitions for replica in partition.replicas)
    in_sync = Counter(replica for partition in partitions for replica in partition.isr)
    return [
        shown
        | {
            "leads": leads[shown["broker"]],
            "replicas": holds[shown["broker"]],
            "in_sync": in_sync[shown["broker"]],
            "is_kraft": found.cluster.brokers[shown["broker"]].is_kraft,
        }
        for shown in brokers_of(found.cluster, found.topics.values())
    ]


def check_known(found: Committed, broker: int) -> None:
    """Raise ``Refused`` if a broker is not registered, unless it was and still has replicas."""
    if not any(broker in partition.replicas for topic in found.topics.values() for partition in topic.partitions):
        broker_of(found, broker)


def broker_of(found: Committed, broker: int) -> Broker:
    """Return a broker's registration. Raises ``Refused`` if there is none."""
    if broker not in found.cluster.brokers:
        raise Refused(f"there is no broker {broker}; 'isrflow brokers list' lists all of them.")
    return found.cluster.brokers[broker]
