"""The metrics of a broker's or gateway's own process, served to Prometheus."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec
import structlog
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from brokers.given_settings import NO_PORT

# The measured values of a process.
M = TypeVar("M", bound=msgspec.Struct)

logger = structlog.get_logger()


class Series(msgspec.Struct, Generic[M], frozen=True):
    """A metric, and how to read its value. A counter's name has no ``_total``, because the exposition adds it."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    value: Callable[[M], float | Mapping[Any, float]]
    labels: tuple[str, ...] = ()

    @property
    def exposed(self) -> str:
        """Return the name that Prometheus sees."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


class OwnMetrics(Collector, Generic[M]):
    """A collector that measures at each scrape, in the scraper's thread."""

    def __init__(self, series: Sequence[Series[M]], measure: Callable[[], M]) -> None:
        self._series = series
        self._measure = measure
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Measure, and render the values."""
        measured = self._measure()
        for series in self._series:
            kind = CounterMetricFamily if series.kind == "counter" else GaugeMetricFamily
            family = kind(series.name, series.help, labels=series.labels)
            value = series.value(measured)
            for labels, number in (value if isinstance(value, Mapping) else {(): value}).items():
                family.add_metric(labels, number)
            yield family


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
