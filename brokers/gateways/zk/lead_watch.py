"""A watch on whether a gateway leads once the engine names it. The engine replaces only a gateway that is silent.

A gateway that cannot begin a term, or cannot read decisions, stops its heartbeats, so that the engine names another
gateway, if there is one. The heartbeats go on as soon as a term begins, or another gateway is named. Meanwhile the
gateway still tries to lead, because it may be the only one.
"""

from brokers.gateways.shared.read_watch import ReadWatch

# How long a gateway may fail to lead before it stops its heartbeats. The limit doubles each time, so that two gateways
# that both cannot lead take turns more and more slowly. A term that begins resets it.
FAILING_LIMIT_S = 5.0
FAILING_LIMIT_MAX_S = 40.0


class LeadWatch:
    """A watch on one gateway: since when it is named without a term, and whether it gave up."""

    def __init__(self, reads: ReadWatch) -> None:
        self._reads = reads
        self._failing_limit_s = FAILING_LIMIT_S
        self._failing_since_s: float | None = None
        self._gave_up = False

    def look(self, now_s: float, *, is_named: bool, leads: bool, is_loading: bool) -> str | None:
        """Return why the gateway must be silent; None if it need not be.

        ``is_loading``: a term holds ``/controller`` and reads ZooKeeper, which has no time limit.
        """
        if leads:
            self._failing_limit_s = FAILING_LIMIT_S
        if leads or not is_named:
            self._failing_since_s, self._gave_up = None, False
        elif self._failing_since_s is None:
            self._failing_since_s = now_s
        elif not self._gave_up and not is_loading and now_s - self._failing_since_s >= self._failing_limit_s:
            self._gave_up = True
            self._failing_limit_s = min(2 * self._failing_limit_s, FAILING_LIMIT_MAX_S)
        if self._reads.is_stalled:
            return "no decision can be read"
        return "it cannot lead" if self._gave_up else None
