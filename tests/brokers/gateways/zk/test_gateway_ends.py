"""How a gateway to brokers in ZooKeeper mode ends. Its log says why."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from brokers.gateways.errors import UnknownFormatError
from brokers.gateways.zk import __main__ as command
from brokers.gateways.zk.gateway import Gateway
from bus.embedded import EmbeddedBus
from bus.interface import BusError


class Said:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.why: list[str] = []
        monkeypatch.setattr(command, "logger", self)
        monkeypatch.setattr(command, "configure", lambda how: None)

    def error(self, what: str, *, why: str) -> None:
        self.why.append(why)


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (UnknownFormatError("start a newer isrflow"), 1, "start a newer isrflow"),
        (BusError("gone"), 3, "gone"),
    ],
)
def test_the_reason_is_found_inside_nested_exception_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int, why: str
) -> None:
    async def run_until_it_fails(gateway: Gateway) -> None:
        raise ExceptionGroup("unhandled errors", [ExceptionGroup("unhandled errors", [error])])

    EmbeddedBus(tmp_path / "bus.db").close()
    said = Said(monkeypatch)
    monkeypatch.setattr(Gateway, "run", run_until_it_fails)
    given = ["--gateway", "100", "--voters", "100@127.0.0.1:1", "--cluster-id", "c", "--zookeeper", "127.0.0.1:1"]
    assert CliRunner().invoke(command.main, [*given, "--bus", str(tmp_path / "bus.db")]).exit_code == code
    assert said.why == [why]
