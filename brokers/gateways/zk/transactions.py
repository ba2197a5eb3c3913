"""Writes as the operations of a transaction of ZooKeeper's client, and which of them failed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from brokers.gateways.zk.mirror import Create, Delete, Write

# The results of operations in a transaction in which another operation failed.
_OTHERS_FAILED = ("RolledBackError", "RuntimeInconsistency")


class Failure(NamedTuple):
    """The operation for which a transaction was refused: its place in the transaction, its path, and the error."""

    number: int
    path: str
    kind: str


def add(transaction: Any, writes: Sequence[Write]) -> None:
    """Add writes to a transaction, in order."""
    for one in writes:
        match one:
            case Create():
                transaction.create(one.path, one.data, sequence=one.sequence)
            case Delete():
                transaction.delete(one.path)
            case _:
                transaction.set_data(one.path, one.data, version=one.version)


def failure(transaction: Any, results: Sequence[object]) -> Failure | None:
    """Say why ZooKeeper refused a transaction; None if it was made."""
    for number, one in enumerate(results):
        if isinstance(one, Exception) and type(one).__name__ not in _OTHERS_FAILED:
            return Failure(number, transaction.operations[number].path, type(one).__name__)
    return None
