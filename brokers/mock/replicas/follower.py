"""What a leader knows of each follower (Kafka's ``Replica``)."""

UNKNOWN = -1


class FollowerState:
    """Follow one follower through its fetches in the leader's present epoch.

    ``log_end_offset`` is the offset it asked for last: it holds everything below. It was caught up
    when it asked for the leader's log end, or for what was the log end at its fetch before.
    """

    __slots__ = ("_fetched_ms", "_leader_end_then", "caught_up_ms", "log_end_offset", "replica_epoch")

    def __init__(self, caught_up_ms: int) -> None:
        self.log_end_offset = UNKNOWN
        self.replica_epoch = UNKNOWN
        self.caught_up_ms = caught_up_ms
        self._leader_end_then = UNKNOWN
        self._fetched_ms = 0

    def fetched(self, offset: int, leader_end_offset: int, replica_epoch: int, now_ms: int) -> None:
        """Take in a fetch from ``offset`` on."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif self._leader_end_then != UNKNOWN and offset >= self._leader_end_then:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.log_end_offset = offset
        self.replica_epoch = replica_epoch
        self._leader_end_then = leader_end_offset
        self._fetched_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """Say whether the follower holds all, or did so not longer ago than ``lag_max_ms``."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_max_ms
