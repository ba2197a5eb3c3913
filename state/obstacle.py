"""Why an election passes a replica over: a fixed vocabulary, like ``state.reason``."""

from enum import StrEnum


class Obstacle(StrEnum):
    """What keeps a replica from being elected."""

    # Its broker is not registered, or was unregistered.
    BROKER_UNREGISTERED = "BROKER_UNREGISTERED"
    # Its broker's session has ended, or the broker has not asked to serve yet.
    BROKER_FENCED = "BROKER_FENCED"
    BROKER_SHUTTING_DOWN = "BROKER_SHUTTING_DOWN"
    # Its broker is active, but the replica's log directory is lost.
    LOG_LOST = "LOG_LOST"
    # Its broker is active, but came back without the log directory that the replica was in. So it has no records.
    LOG_LEFT_BEHIND = "LOG_LEFT_BEHIND"
    # It may lack committed records.
    NOT_IN_SYNC = "NOT_IN_SYNC"
