"""The alerts fire when they should, and alerts and dashboard ask only for metrics that are served."""

import json
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.shared import metrics as gateway_metrics
from brokers.shadow import metrics as shadow_metrics
from sinks.metric_names import OWN
from tests.support.waiting import TIMEOUT_S

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "isrflow.rules.yml"
RULES_TEST = RULES.with_name("isrflow.rules.test.yml")
DASHBOARD = DEPLOY / "grafana" / "isrflow.json"
NO_PROMTOOL = "needs promtool (Debian's package prometheus)"


def promtool(*arguments: str, cwd: Path = RULES.parent) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S)


def served() -> set[str]:
    """Return the names that a query may ask for."""
    names = set()
    for series in (*OWN, *gateway_metrics.SERIES, *shadow_metrics.SERIES):
        ends = ("_bucket", "_count", "_sum") if series.kind == "histogram" else ("",)
        names |= {series.exposed + end for end in ends}
    return names


def asked(text: str) -> set[str]:
    return set(re.findall(r"\bisrflow_[a-z_]+", text))


def expressions() -> list[str]:
    return re.findall(r"^        expr: '(.*)'$", RULES.read_text(), re.MULTILINE)


def alerts() -> list[str]:
    return re.findall(r"^      - alert: (\w+)$", RULES.read_text(), re.MULTILINE)


def panels() -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return held


def test_alerts_ask_only_for_metrics_that_are_served() -> None:
    assert len(expressions()) == len(alerts()) > 15
    assert {name for text in expressions() for name in asked(text)} - served() == set()


def test_every_alert_has_a_test_that_makes_it_fire_and_one_that_does_not() -> None:
    named = re.findall(r"^  - name: (\w+) (fires|stays quiet)$", RULES_TEST.read_text(), re.MULTILINE)
    assert named == [(alert, end) for alert in alerts() for end in ("fires", "stays quiet")]


def test_every_alert_says_what_it_means_and_how_bad_it_is() -> None:
    blocks = RULES.read_text().split("      - alert: ")[1:]
    for block in blocks:
        assert re.search(r"severity: (critical|warning)$", block, re.MULTILINE), block
        assert "          summary: '" in block and "          description: '" in block, block


@pytest.mark.skipif(shutil.which("promtool") is None, reason=NO_PROMTOOL)
def test_alerts_fire_and_stay_quiet_as_they_should() -> None:
    checked = promtool("check", "rules", RULES.name)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = promtool("test", "rules", RULES_TEST.name)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason=NO_PROMTOOL)
def test_an_alert_that_never_fires_is_found(tmp_path: Path) -> None:
    shutil.copy(RULES_TEST, tmp_path)
    broken = RULES.read_text().replace("isrflow_offline_partitions > 0", "isrflow_offline_partitions > 9")
    (tmp_path / RULES.name).write_text(broken)
    tested = promtool("test", "rules", RULES_TEST.name, cwd=tmp_path)
    assert tested.returncode != 0
    assert "IsrflowOfflinePartitions" in tested.stdout + tested.stderr


def test_the_dashboard_asks_only_for_metrics_that_are_served() -> None:
    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    assert len(shown) > 30
    assert {name for text in shown for name in asked(text)} - served() == set()


def test_every_panel_is_named_explained_and_has_a_place_of_its_own() -> None:
    assert all(panel["title"] and panel["description"] for panel in panels())
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    for one, other in combinations((panel["gridPos"] for panel in panels()), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)


@pytest.mark.skipif(shutil.which("promtool") is None, reason=NO_PROMTOOL)
def test_every_query_of_the_dashboard_can_be_read(tmp_path: Path) -> None:
    shown = [target["expr"].replace("$job", ".*") for panel in panels() for target in panel["targets"]]
    rules = [f"      - record: x\n        expr: {json.dumps(text)}\n" for text in shown]
    (tmp_path / "queries.yml").write_text("groups:\n  - name: x\n    rules:\n" + "".join(rules))
    checked = promtool("check", "rules", "--lint=none", "queries.yml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason=NO_PROMTOOL)
def test_a_standby_does_not_hide_the_skew_of_the_engine_that_decides(tmp_path: Path) -> None:
    (panel,) = (panel for panel in panels() if panel["title"] == "Clock skew")
    exported = {
        "isrflow_controller_active": {"decides": 1, "standby": 0},
        # A standby has made no commit, so it exports 0.
        "isrflow_clock_skew_seconds": {"decides": -7, "standby": 0},
        "isrflow_bus_clock_skew_seconds": {"decides": -7, "standby": 0},
    }
    series = [
        {"series": f'{name}{{instance="{instance}",job="isrflow"}}', "values": f"{value}x10"}
        for name, values in exported.items()
        for instance, value in values.items()
    ]
    queries = [
        {
            "expr": target["expr"].replace("$job", ".*"),
            "eval_time": "1m",
            "exp_samples": [{"labels": "{}", "value": -7}],
        }
        for target in panel["targets"]
    ]
    test = {"tests": [{"interval": "15s", "input_series": series, "promql_expr_test": queries}]}
    # JSON is YAML too.
    (tmp_path / "skew.yml").write_text(json.dumps(test))
    tested = promtool("test", "rules", "skew.yml", cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout + tested.stderr
