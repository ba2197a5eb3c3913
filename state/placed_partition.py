"""A partition that knows in which log directories its replicas are (KIP-858).

Most brokers have one directory, and a replica on such a broker needs no entry. So the entries are no fields of every
partition. A partition that has any is of a class of its own, which is stored as a longer array, and the bytes of all
others stay what they were.

    replicas      1    2    3      brokers 1 and 2 have the directories A, B and C, D; broker 3 has one
    directories   A    ""   ""     broker 1 has said that the replica is in A; broker 2 has not said it yet
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import astuple

from state.broker import Broker
from state.log_directory import UNASSIGNED, is_online
from state.partition import Partition

# In place of a directory: the only one of its broker, or not assigned yet.
NO_DIRECTORY = ""
_FIELDS = len(msgspec.structs.fields(Partition))


class PlacedPartition(Partition, frozen=True, array_like=True, gc=False):
    """A partition, and the directory of at least one of its replicas."""

    # One for each replica.
    directories: tuple[str, ...] = ()


def directories_of(partition: Partition) -> tuple[str, ...]:
    """Return the directory of each replica; empty if no replica has one."""
    return partition.directories if isinstance(partition, PlacedPartition) else ()


def known_directories(partition: Partition) -> tuple[str, ...]:
    """Return what ``directories_of`` does, of a stored partition.

    Where a reassignment ended with a move to another directory, isrflow once left those of removed replicas behind.
    """
    return directories_of(partition)[: len(partition.replicas)]


def directory_of(partition: Partition, broker: int) -> str:
    """Return the directory of the replica on ``broker``, or ``NO_DIRECTORY``."""
    if isinstance(partition, PlacedPartition) and broker in partition.replicas:
        return partition.directories[partition.replicas.index(broker)]
    return NO_DIRECTORY


def placed(partition: Partition, directories: tuple[str, ...]) -> Partition:
    """Return the partition with its replicas in ``directories``; a plain one if no replica has a directory."""
    values: tuple[Any, ...] = astuple(partition)[:_FIELDS]
    return PlacedPartition(*(*values, directories)) if any(directories) else Partition(*values)


def is_readable(partition: Partition, broker: Broker) -> bool:
    """Return whether the replica on ``broker`` is, or may be made, in a directory that the broker can read."""
    return not broker.has_several_dirs or is_online(directory_of(partition, broker.broker), broker.log_dirs)


def with_new_replicas(former: Partition | None, replicas: tuple[int, ...], left: Mapping[int, str]) -> tuple[str, ...]:
    """Return the directories of ``replicas``, of which some may be new.

    ``left`` has the brokers of several directories that can read only one of them, so a new replica there is in it.
    """
    held = {} if former is None else dict(zip(former.replicas, directories_of(former), strict=False))
    known = () if former is None else former.replicas
    return tuple(
        [
            held.get(replica, NO_DIRECTORY) if replica in known else left.get(replica, NO_DIRECTORY)
            for replica in replicas
        ]
    )


def moved_to(partition: Partition, broker: int, directory: str) -> tuple[str, ...]:
    """Return the directories of all replicas, with the one on ``broker`` in ``directory``."""
    held = known_directories(partition) or (NO_DIRECTORY,) * len(partition.replicas)
    return tuple(
        [directory if replica == broker else one for replica, one in zip(partition.replicas, held, strict=True)]
    )


def changed_directories(before: Partition, after: Partition) -> dict[int, str]:
    """Return the directory of each replica that is in another one than before; ``UNASSIGNED`` where it has none."""
    return {
        replica: directory_of(after, replica) or UNASSIGNED
        for replica in after.replicas
        if directory_of(after, replica) != directory_of(before, replica)
    }
