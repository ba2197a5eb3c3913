"""Scrape an engine as Prometheus does."""

import re
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.waiting import TIMEOUT_S


def metrics_url(engine_log: Path) -> str:
    """Find the URL of the metrics in the engine's log."""
    url = re.search(r"http://[^\s\x1b\"]+/metrics", engine_log.read_text())
    if url is None:
        raise LookupError(f"no metrics URL in {engine_log}")
    return url[0]


def scrape(url: str) -> dict[str, float]:
    """Read the endpoint: map each sample's name, with its labels, to its value."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        sample.name + "".join(f"{{{k}={v}}}" for k, v in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
