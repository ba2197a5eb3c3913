"""The live view of a cluster, on a bus that the rules decide in a thread."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from cli import committed, top
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import started


@pytest.fixture(autouse=True)
def cluster(tmp_path: Path) -> Iterator[None]:
    engine = started(tmp_path)
    yield
    engine.stop()


def test_top_shows_the_newest_decisions(isrflow: Isrflow) -> None:
    shown = isrflow("top", "--once").stdout
    assert "unhealthy" in shown
    assert "orders-1 leader 2 epoch 0" in shown
    latest = shown.split("Latest decisions, newest first\n")[1].splitlines()
    told = [re.fullmatch(r" *([0-9]+)  +[0-9]+ (s|min|h|days) ago  \S.*", line) for line in latest]
    assert all(told), latest
    seqs = [int(one[1]) for one in told if one]
    assert seqs == sorted(seqs, reverse=True), "a small terminal cuts off the oldest, not the newest"
    document = json.loads(isrflow("top", "--format", "json").stdout)
    assert document["health"]["status"] == "unhealthy"
    assert "gone-soon-0 leader 1 epoch 0" in " ".join(one["text"] for one in document["latest"])


def test_top_says_that_what_it_shows_may_be_old(isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "MAX_AGE_MS", 1)
    assert "the last commit is older than 1 ms: is the engine running?" in isrflow("top", "--once").stdout


def test_what_was_read_grows_old_while_the_next_look_waits_for_the_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = EmbeddedBus(tmp_path / "data" / "bus.db")
    with contextlib.closing(bus):
        screen = top.Screen(bus, "bus")
        assert screen.health.status == "unhealthy"
        later_ms = now_ms() + 60_000
        monkeypatch.setattr(committed, "now_ms", lambda: later_ms)
        assert screen.health.status == "unknown"
        assert screen.document["health"]["last_commit_age_ms"] > 50_000


def test_top_looks_further_back_if_nothing_was_decided_lately(
    isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top, "EVENTS_BACK", (1, 10_000))
    told = [one["text"] for one in json.loads(isrflow("top", "--format", "json").stdout)["latest"]]
    assert any("broker 4 fenced" in one for one in told), told
