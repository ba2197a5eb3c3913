"""The metrics of a broker's or gateway's own process, served to Prometheus."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from brokers.process.given_settings import NO_PORT
from brokers.process.metrics_server import MetricsServer
from conf.metric_series import Labelled, M, Series, plain_family
from conf.security.exposure import Protection

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
def served(metrics: OwnMetrics[M], host: str, port: int, protection: Protection = _OPEN) -> Iterator[int | None]:
    """Serve /metrics, and give the port. Port 0 takes any free port, and -1 serves nothing.

    Raises ``OSError`` if the port is taken.
    """
    if port == NO_PORT:
        yield None
        return
    server = MetricsServer(metrics.registry, host, port, protection)
    try:
        found = server.start()
        logger.info("serving metrics", url=f"{protection.scheme}://{host}:{found}/metrics")
        yield found
    finally:
        server.stop()
