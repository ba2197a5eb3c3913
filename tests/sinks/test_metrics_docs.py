"""docs/metrics.md lists every metric. ISRFLOW_REWRITE=1 writes its tables again."""

import os
import re
from pathlib import Path

from prometheus_client import generate_latest

from sinks.kafka_metric_names import KAFKA
from sinks.metric_names import OWN, Series
from sinks.metrics import Metrics
from tests.sinks.sample import sample

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def example(series: Series, lines: list[str]) -> str:
    name = f"{series.name}_count" if series.kind == "histogram" else series.exposed
    return next(line for line in lines if re.match(rf"{name}[ {{]", line))


def table(all_series: tuple[Series, ...], metrics: Metrics) -> str:
    lines = generate_latest(metrics.registry).decode().splitlines()
    rows = [
        f"| `{series.exposed}` | {series.kind} | {series.help} | `{example(series, lines)}` |" for series in all_series
    ]
    return "\n".join(["| name | type | what it tells | example |", "|---|---|---|---|", *rows])


def test_the_docs_list_every_series_with_an_example() -> None:
    metrics = sample()
    text = DOCS.read_text()
    expected = text
    for mark, all_series in (("own", OWN), ("kafka", KAFKA)):
        begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
        head, rest = expected.split(begin)
        tail = rest.split(end)[1]
        expected = head + begin + table(all_series, metrics) + end + tail
    if os.environ.get("ISRFLOW_REWRITE"):
        DOCS.write_text(expected)
    assert DOCS.read_text() == expected


def test_own_names_follow_prometheus_habits() -> None:
    for series in OWN:
        assert re.fullmatch(r"isrflow_[a-z_]+", series.name)
        assert series.kind != "counter" or not series.name.endswith("_total")
        assert not re.search(r"_(ms|millis|kb|mb)$", series.name)
