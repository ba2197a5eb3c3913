"""How a gateway to brokers in ZooKeeper mode ends. Its log gives the reason."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.gateways.zk import process
from brokers.gateways.zk.gateway import Gateway
from bus.interface import BusError
from cli.commands import command
from state.shadow import ShadowError
from state.stored.codec import LevelError
from tests.brokers.gateways.failing import Said, fail


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (UnknownDecisionError("start a newer isrflow"), 1, "start a newer isrflow"),
        (LevelError("a later level"), 1, "a later level"),
        (ShadowError("a shadow"), 1, "a shadow"),
        (BusError("gone"), 3, "gone"),
    ],
)
def test_the_reason_is_found_inside_nested_exception_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int, why: str
) -> None:
    fail(monkeypatch, Gateway, tmp_path, error)
    said = Said(monkeypatch, process)
    given = {"node.id": 100, "controller.quorum.voters": "100@127.0.0.1:1", "cluster.id": "c", "metrics.port": 0}
    sets = (part for key, value in given.items() for part in ("--set", f"{key}={value}"))
    line = ["gateway", "zookeeper", "--bus", str(tmp_path / "bus.db"), *sets, "--set", "zookeeper.connect=127.0.0.1:1"]
    assert CliRunner().invoke(command, line).exit_code == code
    assert said.why == [why]
