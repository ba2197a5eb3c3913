"""Writes to ZooKeeper, the transactions that they make up, and the operation for which a transaction was refused."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

# The results of operations in a transaction that failed because of another operation.
_OTHERS_FAILED = ("RolledBackError", "RuntimeInconsistency")


class Create(NamedTuple):
    """A new znode; with ``sequence`` ZooKeeper adds a number to its name.

    A write that is ``joined`` is in the same transaction as the one before it.
    """

    path: str
    data: bytes
    sequence: bool = False
    joined: bool = False


class Set(NamedTuple):
    """A new text for a znode, which must be at ``version``; -1 for any."""

    path: str
    data: bytes
    version: int = -1
    joined: bool = False


class Delete(NamedTuple):
    """The deletion of a znode without children; with ``whole``, unplanned children are deleted too."""

    path: str
    joined: bool = False
    whole: bool = False


Write = Create | Set | Delete


class Failure(NamedTuple):
    """The operation for which a transaction was refused: its place in the transaction, its path, and the error."""

    number: int
    path: str
    kind: str


def transactions(writes: Iterable[Write], writes_max: int, bytes_max: int) -> Iterator[list[Write]]:
    """Divide writes into transactions within the limits. A write and those joined to it always stay together."""
    part: list[Write] = []
    size = 0
    for step in _steps(writes):
        step_size = sum(len(one.path) + (0 if isinstance(one, Delete) else len(one.data)) for one in step)
        if part and (len(part) + len(step) > writes_max or size + step_size > bytes_max):
            yield part
            part, size = [], 0
        part += step
        size += step_size
    if part:
        yield part


def _steps(writes: Iterable[Write]) -> Iterator[list[Write]]:
    step: list[Write] = []
    for one in writes:
        if step and not one.joined:
            yield step
            step = []
        step.append(one)
    if step:
        yield step


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
    """Return why ZooKeeper refused a transaction; None if it was made."""
    for number, one in enumerate(results):
        if isinstance(one, Exception) and type(one).__name__ not in _OTHERS_FAILED:
            return Failure(number, transaction.operations[number].path, type(one).__name__)
    return None
