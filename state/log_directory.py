"""The ids of log directories, which brokers of Kafka 4 give them (KIP-858, ``DirectoryId``)."""

from collections.abc import Collection

# The replica is in a directory that was chosen before directories had ids. Before version 16 of the rules this was the
# id of a replica whose broker has not said yet where it is.
MIGRATING = "AAAAAAAAAAAAAAAAAAAAAA"
# The replica's broker has not said yet in which directory it is. Before version 16 this counted as a lost directory.
UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAQ"
# It is in a directory that is lost, and nobody knows which.
LOST = "AAAAAAAAAAAAAAAAAAAAAg"
# How many directories are remembered that a broker once had.
OFFLINE_KEPT_MAX = 64


def is_online(directory: str, online: Collection[str]) -> bool:
    """Say whether a replica in ``directory`` can be read, when ``online`` are those that its broker can read.

    An empty id is that of a replica without a directory of its own (``state.placed_partition``). Of a broker that
    names no directory at all, every one counts as online. ``UNASSIGNED`` is stored only by rules before version 16.
    """
    if directory in ("", MIGRATING):
        return True
    return directory not in (UNASSIGNED, LOST) and (not online or directory in online)
