"""The ids that brokers of Kafka 4 give their log directories (KIP-858, ``DirectoryId``)."""

from collections.abc import Collection

# The replica is in a directory that was chosen before directories had ids.
MIGRATING = "AAAAAAAAAAAAAAAAAAAAAA"
# The replica's broker has not said yet in which directory it is.
UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAQ"
# The replica was in a directory that is lost, and it is unknown in which one.
LOST = "AAAAAAAAAAAAAAAAAAAAAg"
# The most offline or former directories that are kept for a broker.
OFFLINE_KEPT_MAX = 64


def is_online(directory: str, online: Collection[str]) -> bool:
    """Return whether a replica in ``directory`` can be read. ``online`` are the directories that its broker can read.

    The id is empty if the replica has no directory of its own (``state.directories``). If a broker names no
    directories, all of them count as online.
    """
    if directory in ("", MIGRATING):
        return True
    return directory != LOST and (not online or directory in online)
