"""How a gateway ends: superseded by another start, or because its bus is gone. Its log gives the reason."""

import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokers.gateways.kraft import probing, process
from brokers.gateways.kraft.following.decision_applier import SupersededError
from brokers.gateways.kraft.gateway import Gateway
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.process.ending import EXIT_REFUSED, EXIT_SUPERSEDED, EXIT_UNREACHABLE
from bus.embedded import EmbeddedBus
from bus.interface import BusError
from cli.commands import command
from state.shadow import ShadowError
from state.stored.codec import LevelError
from tests.brokers.gateways.failing import Said, fail
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until

QUICK = {"gateway_heartbeat_interval_ms": 20}


def test_a_run_that_never_led_ends_when_another_replaces_it(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, 2, **QUICK)
    first = quorum.gateways[101]
    try:
        quorum.start_elsewhere(101, tmp_path / "elsewhere")
        wait_until(lambda: first.has_ended, "the first to stop")
        with pytest.raises(BaseExceptionGroup) as ended:
            first.stop()
        assert ended.group_contains(SupersededError, match="gateway 101 was replaced")
        assert quorum.state.voter == 100
    finally:
        quorum.stop()


def run(folder: Path, *more: str) -> int:
    given = {"node.id": 100, "controller.quorum.voters": "100@127.0.0.1:1", "cluster.id": "c", "metrics.port": 0}
    texts = (*(f"{key}={value}" for key, value in given.items()), f"metadata.log.dir={folder / 'log'}", *more)
    sets = (part for text in texts for part in ("--set", text))
    return CliRunner().invoke(command, ["gateway", "kraft", "--bus", str(folder / "bus.db"), *sets]).exit_code


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (SupersededError("another start"), EXIT_SUPERSEDED, "another start"),
        (StorageError("other decisions"), EXIT_REFUSED, "other decisions"),
        (UnknownDecisionError("a later kind"), EXIT_REFUSED, "a later kind"),
        (LevelError("a later level"), EXIT_REFUSED, "a later level"),
        (ShadowError("a shadow"), EXIT_REFUSED, "a shadow"),
        (BusError("gone"), EXIT_UNREACHABLE, "gone"),
        (OSError(28, "no space"), EXIT_UNREACHABLE, "no space"),
        (OSError(13, "no access", "log/a"), EXIT_UNREACHABLE, "log/a: no access"),
        (TimeoutError(), EXIT_UNREACHABLE, "TimeoutError()"),
    ],
)
def test_the_reason_is_found_inside_nested_exception_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int, why: str
) -> None:
    fail(monkeypatch, Gateway, tmp_path, error)
    said = Said(monkeypatch, process)
    assert run(tmp_path) == code
    assert said.why == [why]


def test_a_directory_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    EmbeddedBus(tmp_path / "bus.db").close()
    said = Said(monkeypatch, process)
    assert run(tmp_path, f"metadata.log.dir={tmp_path}/bus.db/log") == EXIT_UNREACHABLE
    assert said.why == [f"{tmp_path}/bus.db: it is a file, but must be a directory"]


def test_a_missing_bus_is_waited_for_and_not_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = Said(monkeypatch, process)
    assert run(tmp_path, "bus.unreachable.max.ms=1") == EXIT_UNREACHABLE
    assert "there is no bus at" in said.why[0]
    assert not (tmp_path / "bus.db").exists()


def test_a_gateway_starts_when_the_bus_is_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tries = 0
    decided_seq = EmbeddedBus.decided_seq

    def out_of_reach(bus: EmbeddedBus) -> int:
        nonlocal tries
        is_gateways = threading.current_thread().name.startswith("opening")
        tries += is_gateways
        if is_gateways and tries <= 2:
            raise BusError("out of reach")
        return decided_seq(bus)

    quorum = InProcessQuorum(tmp_path)
    try:
        quorum.gateways[100].stop()
        monkeypatch.setattr(EmbeddedBus, "decided_seq", out_of_reach)
        quorum.start(100)
    finally:
        quorum.stop()
    assert tries > 2


def test_a_stopped_gateway_probes_no_broker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    probed: list[int] = []
    quorum = InProcessQuorum(tmp_path)
    client = quorum.client()
    try:
        quorum.join(client, 1)
        monkeypatch.setattr(probing.Probes, "begin", lambda self, broker: probed.append(broker))
        quorum.gateways[100].stop()
        # The connection ended because the gateway stopped, not because the broker died.
        assert probed == []
    finally:
        client.close()
        quorum.stop()
