"""The paths that the engine serves."""

from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from bus.clock import steady_ms
from sinks.metric_snapshot import MetricSnapshot
from sinks.metrics import Metrics
from sinks.web.health import Health, availability, liveness, readiness
from web import routes


def app_of(metrics: Metrics, more: Sequence[BaseRoute] = ()) -> Starlette:
    """Make the application that serves metrics and health, and the routes in ``more``."""

    def judged(judge: Callable[[MetricSnapshot, int], Health]) -> Callable[[], Health]:
        # The snapshot is replaced as a whole, so reading it waits for nothing.
        return lambda: judge(metrics.snapshot, steady_ms())

    health = {"/healthz": judged(liveness), "/readyz": judged(readiness), "/standbyz": judged(availability)}
    return routes.app_of(metrics.registry, health, more)
