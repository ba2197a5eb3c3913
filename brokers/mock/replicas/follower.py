"""What a leader knows of one of its followers (Kafka's ``Replica``)."""

UNKNOWN = -1


class FollowerState:
    """A follower's state, as its fetches in the leader's present epoch show it.

    ``log_end_offset`` is the offset of its last fetch, because it holds everything below. The follower was caught up
    when it fetched from the leader's log end, or from what was the leader's log end at the fetch before.
    """

    __slots__ = ("_fetched_ms", "_leader_end_then", "caught_up_ms", "log_end_offset", "replica_epoch")

    def __init__(self, caught_up_ms: int) -> None:
        self.log_end_offset = UNKNOWN
        self.replica_epoch = UNKNOWN
        self.caught_up_ms = caught_up_ms
        self._leader_end_then = UNKNOWN
        self._fetched_ms = 0

    def fetched(self, offset: int, leader_end_offset: int, replica_epoch: int, now_ms: int) -> None:
        """Note a fetch from ``offset``."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif self._leader_end_then != UNKNOWN and offset >= self._leader_end_then:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.log_end_offset = offset
        self.replica_epoch = replica_epoch
        self._leader_end_then = leader_end_offset
        self._fetched_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """Return whether the follower holds everything, or did at most ``lag_max_ms`` ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_max_ms
