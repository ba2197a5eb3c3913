"""The log directories of a partition's replicas (KIP-858).

Most brokers have one directory, which is not stored.

    replicas      1    2    3      brokers 1 and 2 have the directories A, B and C, D; broker 3 has one
    directories   A    ""   ""     broker 1 has said that its replica is in A; broker 2 has yet to say
"""

from collections.abc import Mapping

from state.broker import Broker
from state.log_directory import UNASSIGNED, is_online
from state.partition import Partition

# In place of a directory: the only one of its broker, or not assigned yet.
NO_DIRECTORY = ""


def kept(directories: tuple[str, ...]) -> tuple[str, ...]:
    """Return directories as a partition keeps them: none if no replica has one."""
    return directories if any(directories) else ()


def directory_of(partition: Partition, broker: int) -> str:
    """Return the directory of the replica on ``broker``, or ``NO_DIRECTORY``."""
    if partition.directories and broker in partition.replicas:
        return partition.directories[partition.replicas.index(broker)]
    return NO_DIRECTORY


def is_readable(partition: Partition, broker: Broker) -> bool:
    """Return whether the replica on ``broker`` is, or may be made, in a directory that the broker can read."""
    return not broker.has_several_dirs or is_online(directory_of(partition, broker.broker), broker.log_dirs)


def with_new_replicas(former: Partition | None, replicas: tuple[int, ...], left: Mapping[int, str]) -> tuple[str, ...]:
    """Return the directories of ``replicas``, of which some may be new.

    ``left`` has each broker that can read only one of several directories, with that one, which gets new replicas.
    """
    held = {} if former is None else dict(zip(former.replicas, all_directories(former), strict=True))
    return tuple([held[replica] if replica in held else left.get(replica, NO_DIRECTORY) for replica in replicas])


def moved_to(partition: Partition, broker: int, directory: str) -> tuple[str, ...]:
    """Return the directories of all replicas, with the one on ``broker`` in ``directory``."""
    pairs = zip(partition.replicas, all_directories(partition), strict=True)
    return tuple([directory if replica == broker else held for replica, held in pairs])


def all_directories(partition: Partition) -> tuple[str, ...]:
    """Return the directory of each replica, even if none has one."""
    return partition.directories or (NO_DIRECTORY,) * len(partition.replicas)


def changed_directories(before: Partition, after: Partition) -> dict[int, str]:
    """Return the directory of each replica that is in another one than before; ``UNASSIGNED`` where it has none."""
    return {
        replica: directory_of(after, replica) or UNASSIGNED
        for replica in after.replicas
        if directory_of(after, replica) != directory_of(before, replica)
    }
