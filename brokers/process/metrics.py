"""The metrics and the health of a broker's or gateway's own process, served over HTTP."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from brokers.process.given_settings import NO_PORT
from conf.metric_series import Labelled, M, Series, plain_family
from conf.security.exposure import Protection

if TYPE_CHECKING:
    from web.routes import Health

logger = structlog.get_logger()

_OPEN = Protection()


class OwnMetrics(Collector, Generic[M]):
    """A collector that measures at each scrape, in the scraper's thread."""

    def __init__(self, series: Sequence[Series[M, float | Labelled]], measure: Callable[[], M]) -> None:
        self._series = series
        self._measure = measure
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Measure, and render the values."""
        measured = self._measure()
        return [plain_family(series, series.value(measured)) for series in self._series]


@contextlib.contextmanager
def served(
    metrics: OwnMetrics[M],
    host: str,
    port: int,
    protection: Protection = _OPEN,
    health: Mapping[str, Callable[[], "Health"]] = MappingProxyType({}),
) -> Iterator[int | None]:
    """Serve /metrics and the paths of ``health``, and give the port. Port 0 takes any free port, and -1 serves nothing.

    Raises ``web.server.MetricsError``, an ``OSError``, if the port is taken.
    """
    if port == NO_PORT:
        yield None
        return
    # Loading it takes as long as the rest of a mock broker, most of which serve nothing.
    from web.routes import app_of
    from web.server import WebServer

    server = WebServer(app_of(metrics.registry, health), protection)
    try:
        found = server.serve(host, port)
        logger.info("serving metrics", url=f"{protection.scheme}://{host}:{found}/metrics")
        yield found
    finally:
        server.close()
