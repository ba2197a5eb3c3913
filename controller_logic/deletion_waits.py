"""Say for what a deletion waits, and for whom."""

from controller_logic.batch import Batch


def are_all_kraft(batch: Batch) -> bool:
    """Return whether all registered brokers, and at least one, are of Kafka 4."""
    brokers = batch.state.brokers.values()
    return bool(brokers) and all(other.is_kraft for other in brokers)


def ignores_moves(batch: Batch) -> bool:
    """Return whether deletions begin and partitions are added while a topic's partitions move.

    In ZooKeeper mode both wait; with Kafka 4 neither does (``ReplicationControlManager``).
    """
    return are_all_kraft(batch)


def waits_for_nobody(batch: Batch) -> bool:
    """Return whether a topic is gone in the event that deletes it.

    Brokers of Kafka 4 know topics by their ids, and read in the metadata log that one is gone before they read of
    another one of its name.
    """
    return are_all_kraft(batch)


def is_passed_over(batch: Batch, broker: int) -> bool:
    """Return whether no report of a broker is awaited: it is unregistered, or away and removes strays by itself."""
    return broker not in batch.state.brokers or broker not in batch.state.awaited
