"""docs/metrics.md lists every metric of engines, gateways and shadows. ISRFLOW_REWRITE=1 writes its tables again."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from brokers.gateways.kraft.raft_metrics import RAFT
from brokers.gateways.shared import metrics as gateway_metrics
from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.mock import metrics as mock_metrics
from brokers.process.metrics import OwnMetrics
from brokers.shadow import metrics as shadow_metrics
from brokers.shadow.metrics import ShadowMeasures
from conf.metric_series import Series
from sinks.kafka_metric_names import KAFKA
from sinks.metric_names import OWN
from tests.sinks.conftest import Still
from tests.sinks.sample import sample

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


AnySeries = Series[Any, Any]
GATEWAY = GatewayMeasures(
    gateway=100,
    is_serving=True,
    leads=True,
    leader=100,
    quorum_epoch=2,
    decided_seq=4_000,
    end_offset=5_120,
    brokers={"active": 3},
)
SHADOW = ShadowMeasures(lag_ms=40, offset=5_120, operations={"isr_shrunk": 3})


def documented() -> list[tuple[str, Sequence[AnySeries], CollectorRegistry]]:
    """List each table: its mark in the docs, its series, and a registry that has them."""
    metrics = sample().registry
    return [
        ("own", OWN, metrics),
        ("kafka", KAFKA, metrics),
        ("gateway", gateway_metrics.SERIES, OwnMetrics(gateway_metrics.SERIES, lambda: GATEWAY).registry),
        ("raft", RAFT, OwnMetrics(RAFT, lambda: GATEWAY).registry),
        ("shadow", shadow_metrics.SERIES, OwnMetrics(shadow_metrics.SERIES, lambda: SHADOW).registry),
    ]


def example(series: AnySeries, lines: list[str]) -> str:
    name = f"{series.name}_count" if series.kind == "histogram" else series.exposed
    return next(line for line in lines if re.match(rf"{name}[ {{]", line))


def labels(series: AnySeries, lines: list[str]) -> str:
    found = [f"`{label}`" for label in re.findall(r'(\w+)="', example(series, lines)) if label != "quantile"]
    return f" by {', '.join(found)}" if found else ""


def table(all_series: Sequence[AnySeries], registry: CollectorRegistry) -> str:
    lines = generate_latest(registry).decode().splitlines()
    # Series that mean the same share a row.
    names: dict[str, list[str]] = {}
    for series in all_series:
        kind = f" ({series.kind})" if series.kind not in ("counter", "gauge") else ""
        names.setdefault(series.help, []).append(f"`{series.exposed}`{labels(series, lines)}{kind}")
    rows = [f"| {', '.join(same)} | {told} |" for told, same in names.items()]
    return "\n".join(["| name | meaning |", "|---|---|", *rows])


def test_the_docs_list_every_series_with_its_labels(still: Still) -> None:
    text = DOCS.read_text()
    expected = text
    for mark, all_series, registry in documented():
        begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
        head, rest = expected.split(begin)
        tail = rest.split(end)[1]
        expected = head + begin + table(all_series, registry) + end + tail
    if os.environ.get("ISRFLOW_REWRITE"):
        DOCS.write_text(expected)
    assert DOCS.read_text() == expected


def test_own_names_follow_prometheus_habits() -> None:
    for series in (*OWN, *gateway_metrics.SERIES, *shadow_metrics.SERIES, *mock_metrics.SERIES):
        assert re.fullmatch(r"isrflow_[a-z_]+", series.name)
        assert series.kind != "counter" or not series.name.endswith("_total")
        assert not re.search(r"_(ms|millis|kb|mb)$", series.name)


def test_the_registry_serves_exactly_the_documented_metrics() -> None:
    served = {family.name for family in sample().registry.collect()}
    assert served == {series.name for series in (*OWN, *KAFKA)}
    cells = re.findall(r"^\| (`[a-z_]+`.*?) \|", DOCS.read_text(), re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`((?:isrflow|kafka)_[a-z_]+)`", cell)}
    assert listed == {series.exposed for _, all_series, _ in documented() for series in all_series}
