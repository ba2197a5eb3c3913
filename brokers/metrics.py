"""The metrics of a broker's or gateway's own process, served to Prometheus."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic

import structlog
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from brokers.given_settings import NO_PORT
from conf.metric_series import Labelled, M, Series, plain_family

logger = structlog.get_logger()


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
def served(metrics: OwnMetrics[M], host: str, port: int) -> Iterator[int | None]:
    """Serve /metrics, and give the port. Port 0 takes any free port, and -1 serves nothing.

    Raises ``OSError`` if the port is taken.
    """
    if port == NO_PORT:
        yield None
        return
    server, thread = start_http_server(port, host, registry=metrics.registry)
    try:
        found = int(server.server_port)
        logger.info("serving metrics", url=f"http://{host}:{found}/metrics")
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
