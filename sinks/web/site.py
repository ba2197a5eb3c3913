"""Everything that the engine serves, put together."""

from collections.abc import Sequence

from bus.clock import steady_ms
from bus.interface import Bus, Decided, Page
from conf.security.exposure import Protection
from sinks.metrics import Metrics
from sinks.web.health import readiness
from sinks.web.inbox import Inbox
from sinks.web.live import Live
from sinks.web.page_routes import page_routes
from sinks.web.past import PastAnswers
from sinks.web.push import Push
from sinks.web.routes import app_of
from state.cluster import Cluster
from web.server import WebServer

_OPEN = Protection()


class Site:
    """The engine's address: the page, metrics and health.

    While nothing is served, nothing is collected for the page.
    """

    def __init__(
        self,
        bus: Bus,
        metrics: Metrics,
        past: PastAnswers | None = None,
        protection: Protection = _OPEN,
        cluster_name: str = "",
    ) -> None:
        self._inbox = Inbox()
        self._live = Live(bus, self._inbox, lambda: metrics.snapshot.standby, metrics.at_risk, self._count_lag)
        self._bus = bus
        self._metrics = metrics
        self._push = Push(lambda: metrics.snapshot, self._live, has_past=past is not None, cluster_name=cluster_name)
        self._server = WebServer(app_of(metrics, page_routes(self._push, self._live, past)), protection)
        self.scheme = protection.scheme
        self._past = past
        self._is_served = False

    def serve(self, host: str, port: int) -> int | None:
        """Serve from now on, and return the port. Port 0 takes any free port, and -1 serves nothing.

        Raises ``MetricsError``.
        """
        found = self._server.serve(host, port)
        if found is not None:
            self._is_served = True
            self._live.start()
        return found

    def _count_lag(self) -> None:
        # The job counts it as long as its JVM answers.
        if self._metrics.snapshot.active and not readiness(self._metrics.snapshot, steady_ms()).ok:
            self._metrics.bus_at(self._bus.due_seq(self._metrics.decided_seq))

    def took_over(self) -> None:
        """Note that this job decides from now on."""
        self._inbox.begin()

    def committed(
        self, through: int, clusters: Sequence[Cluster], pages: Sequence[Page], decisions: Sequence[Decided]
    ) -> None:
        """Show a batch that is committed."""
        if self._is_served:
            self._inbox.committed(through, clusters, pages, decisions)

    def close(self) -> None:
        """Stop serving."""
        self._push.close()
        self._server.close()
        if self._is_served:
            self._live.stop()
            self._live.join(10)
        if self._past:
            self._past.close()
