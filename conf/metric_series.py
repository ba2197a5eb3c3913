"""Metrics by name: what each is, and how it reads its value and is rendered for Prometheus."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

# What is measured, and the values that are read from it.
M = TypeVar("M", bound=msgspec.Struct)
V = TypeVar("V")
# Values by their label values, which are in the order of the labels.
Labelled = Mapping[Any, float]


class Series(msgspec.Struct, Generic[M, V], frozen=True):
    """A metric. A counter's name has no ``_total``, because the exposition adds it."""

    name: str
    kind: Literal["gauge", "counter", "histogram", "summary"]
    help: str
    value: Callable[[M], V]
    labels: tuple[str, ...] = ()

    @property
    def exposed(self) -> str:
        """The name that Prometheus sees."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def plain_family(series: Series[Any, Any], value: float | Labelled) -> Metric:
    """Render a counter or gauge."""
    kind = CounterMetricFamily if series.kind == "counter" else GaugeMetricFamily
    family = kind(series.name, series.help, labels=series.labels)
    for labels, number in (value if isinstance(value, Mapping) else {(): value}).items():
        family.add_metric(labels, number)
    return family
