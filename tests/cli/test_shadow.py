"""A metadata log is read onto a bus and reported, and every command can be asked about it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from cli.commands import command
from cli.shadow import read
from controller_logic.replay import decide
from history.shadow_report import ShadowReport
from state.policy import Policy
from streaming import in_process
from tests.brokers.shadow.record import PASSWORD
from tests.brokers.shadow.worlds import BUNDLES, LOGS, T, bytes_of, partition, rec
from tests.cli.conftest import Isrflow

OF_4_0, OF_4_1 = LOGS / "kafka-4.0.2.tar.xz", LOGS / "kafka-4.1.0.tar.xz"


@pytest.fixture(scope="module")
def read_bus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bus on which the log of a recorded cluster was read."""
    path = tmp_path_factory.mktemp("shadow") / "incident.db"
    done = CliRunner().invoke(command, ["shadow", "read", str(OF_4_1), "--bus", str(path)])
    assert done.exit_code == 0, done.output
    assert "orders  1" in done.stdout, "the ISR that shrank"
    return path


def test_a_partition_is_explained(isrflow: Isrflow, read_bus: Path) -> None:
    said = isrflow("partitions", "explain", "frail-0", "--bus", str(read_bus)).stdout
    assert "frail-0: leader 2 -> 3, ISR 2,3 -> 3, leader epoch 0 -> 1" in said
    assert "Broker 2 was passed over because it was fenced." in said


def test_the_times_are_those_of_the_observed_cluster(isrflow: Isrflow, read_bus: Path) -> None:
    lines = isrflow("events", "--bus", str(read_bus)).stdout.splitlines()
    events = [json.loads(line)["event"] for line in lines]
    kill = next(one for one in events if one["cause"] == "session_expired")
    states = []
    for time_ms in (kill["time_ms"] - 1, kill["time_ms"]):
        moment = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()
        done = isrflow("describe", "--at", moment, "--format", "json", "--bus", str(read_bus))
        states.append({broker["broker"]: broker["state"] for broker in json.loads(done.stdout)["brokers"]})
    broker = kill["evidence"]["broker"]
    assert (states[0][broker], states[1][broker]) == ("active", "fenced")


def test_a_recorded_state_does_not_grow_old(isrflow: Isrflow, read_bus: Path) -> None:
    done = isrflow("describe", "--bus", str(read_bus))
    assert (done.exit_code, done.stderr) == (0, "")
    assert isrflow("health", "--bus", str(read_bus)).exit_code == 1, "unhealthy, and not unknown"


def test_the_decisions_are_those_of_a_replay(read_bus: Path) -> None:
    bus = EmbeddedBus(read_bus)
    entries = bus.read(0, bus.last_seq())
    expected = decide(entries, Policy()).decisions
    found = bus.decisions((0, -1), 100_000)
    bus.close()
    assert [tuple(one) for one in found] == [tuple(one) for one in expected]


def test_small_batches_decide_the_same(
    isrflow: Isrflow, read_bus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "BATCH_EVENTS", 3)
    monkeypatch.setattr(read, "LOADED_BYTES", 5_000)
    assert isrflow("shadow", "read", str(OF_4_1), "--bus", str(tmp_path / "b.db")).exit_code == 0
    first, second = EmbeddedBus(read_bus), EmbeddedBus(tmp_path / "b.db")
    assert first.decisions((0, -1), 100_000) == second.decisions((0, -1), 100_000)
    assert view_of_image(first.image()) == view_of_image(second.image())
    first.close()
    second.close()


def test_no_secret_is_on_the_bus(read_bus: Path) -> None:
    for path in read_bus.parent.iterdir():
        assert PASSWORD.encode() not in path.read_bytes()
    bus = EmbeddedBus(read_bus)
    told = b"".join(entry.raw for entry in bus.read(0, bus.last_seq()))
    bus.close()
    assert b"listener.name.tls.ssl.key.password" in told
    assert b"[hidden]" in told


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_the_audit_finds_kafkas_own_defect_and_nothing_else(isrflow: Isrflow, bundle: Path, tmp_path: Path) -> None:
    """KAFKA-19522: a broker that only registers is elected while it is fenced."""
    done = isrflow("shadow", "read", str(bundle), "--bus", str(tmp_path / "b.db"), "--format", "json")
    report = json.loads(done.stdout)
    found = [(one["topic"], one["message"]) for one in report["violations"]]
    assert found == ([("single", "leader 3 is fenced, or not registered")] if bundle == OF_4_0 else [])
    assert report["divergences"] == []


def test_the_formats_tell_the_same(isrflow: Isrflow, tmp_path: Path) -> None:
    told = {
        form: isrflow("shadow", "read", str(OF_4_1), "--bus", str(tmp_path / form), "--format", form).stdout
        for form in ("text", "json", "html")
    }
    report = json.loads(told["json"])
    assert set(report) == set(ShadowReport.__struct_fields__)
    assert f"Partitions were without a leader {report['offline_count']} times." in told["text"]
    assert f"<p>Partitions were without a leader {report['offline_count']} times.</p>" in told["html"]
    assert "<td>single-0</td>" in told["html"]


def test_a_bus_that_is_not_new_is_refused(isrflow: Isrflow, read_bus: Path) -> None:
    done = isrflow("shadow", "read", str(OF_4_1), "--bus", str(read_bus))
    assert (done.exit_code, done.stderr) == (2, f"Error: bus {read_bus} is not new: name another file with --bus\n")


def test_what_is_no_log_is_refused(isrflow: Isrflow, tmp_path: Path) -> None:
    done = isrflow("shadow", "read", str(tmp_path), "--bus", str(tmp_path / "b.db"))
    assert done.exit_code == 2
    assert "has no metadata log: expected __cluster_metadata-0" in done.stderr
    assert not (tmp_path / "b.db").exists()


def test_damage_is_reported(isrflow: Isrflow, tmp_path: Path) -> None:
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    batches = [bytes_of(0, rec("Topic", Name="t", TopicId=T), partition()), bytes_of(2, partition(1))]
    batches.append(bytes_of(3, partition(2)))
    damaged = bytearray(batches[1])
    damaged[-1] ^= 1
    (log / f"{0:020d}.log").write_bytes(batches[0] + damaged + batches[2])
    done = isrflow("shadow", "read", str(log), "--bus", str(tmp_path / "b.db"))
    assert done.exit_code == 0, done.stderr
    assert "Cluster unknown" in done.stdout
    assert "2       records up to offset 3 are missing: its records are missing or damaged" in done.stdout
    assert "1 topic with 2 partitions" in done.stdout
