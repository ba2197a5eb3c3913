"""How a gateway to brokers in ZooKeeper mode ends. Its log gives the reason."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.gateways.zk import __main__ as command
from brokers.gateways.zk.gateway import Gateway
from bus.interface import BusError
from state.stored.codec import LevelError
from tests.brokers.gateways.failing import Said, fail


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (UnknownDecisionError("start a newer isrflow"), 1, "start a newer isrflow"),
        (LevelError("a later level"), 1, "a later level"),
        (BusError("gone"), 3, "gone"),
    ],
)
def test_the_reason_is_found_inside_nested_exception_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int, why: str
) -> None:
    fail(monkeypatch, Gateway, tmp_path, error)
    said = Said(monkeypatch, command)
    given = ["--gateway", "100", "--voters", "100@127.0.0.1:1", "--cluster-id", "c", "--zookeeper", "127.0.0.1:1"]
    assert CliRunner().invoke(command.main, [*given, "--bus", str(tmp_path / "bus.db")]).exit_code == code
    assert said.why == [why]
