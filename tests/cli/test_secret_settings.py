"""Secret settings of brokers are hidden wherever people read them, and only there."""

import json
from pathlib import Path
from typing import Any

import pytest

from state.decisions import AnyDecision, decode
from state.secrets import without_secrets
from tests.cli.conftest import Isrflow
from tests.support.decided_bus import DecidedBus

SECRETS = {
    "ssl.keystore.password": "hunter2",
    "listener.name.external.plain.sasl.jaas.config": "hunter2",
    # Nobody knows it, so it may be a password of a plugin.
    "my.reporter.token": "hunter2",
}
SHOWN = {"log.retention.ms": "7000", "min.insync.replicas": "1"}
SETTINGS = SECRETS | SHOWN
HIDDEN = dict.fromkeys(SECRETS, "[hidden]") | SHOWN


@pytest.fixture(autouse=True)
def _bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = DecidedBus(tmp_path / "bus.db")
    unclean = {"unclean.leader.election.enable": "true"}
    unchanged = {"leader_epoch": 0, "partition_epoch": 0}
    events = [
        {"kind": "broker_register", "broker": 1, "incarnation": "a"},
        {"kind": "broker_heartbeat", "broker": 1, "broker_epoch": 1, "want_fence": False, "want_shutdown": False},
        {"kind": "broker_register", "broker": 2, "incarnation": "a"},
        {"kind": "broker_heartbeat", "broker": 2, "broker_epoch": 3, "want_fence": False, "want_shutdown": False},
        {"kind": "create_topic", "topic": "t", "assignment": {"0": [1, 2]}},
        {"kind": "alter_isr", "topic": "t", "partition": 0, "broker": 1, "broker_epoch": 1} | unchanged | {"isr": [1]},
        {"kind": "broker_heartbeat", "broker": 1, "broker_epoch": 1, "want_fence": True, "want_shutdown": False},
        {"kind": "alter_config", "entity": "broker", "name": "1", "config": SETTINGS},
        {"kind": "alter_config", "entity": "cluster", "config": SETTINGS | unclean},
        {"kind": "alter_config", "entity": "topic", "name": "t", "config": {"min.insync.replicas": "1"}},
        {"kind": "alter_config", "entity": "broker", "name": 1, "config": SETTINGS},
    ]
    bus.take([json.dumps({"time_ms": 0, **event}).encode() for event in events])
    bus.close()
    monkeypatch.setenv("ISRFLOW_BUS", str(tmp_path / "bus.db"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["brokers", "describe", "1"],
        ["brokers", "describe", "1", "--format", "json"],
        ["state", "cat", "/settings/brokers/1"],
        ["state", "cat", "/settings/cluster"],
        ["decisions", "--kind", "config"],
        ["decisions", "--kind", "config", "--format", "text"],
        ["decisions", "--kind", "rejected"],
        ["events", "--kind", "alter_config", "--format", "text"],
        ["partitions", "explain", "t-0"],
        ["partitions", "explain", "t-0", "--format", "json"],
        ["top", "--once", "--format", "json"],
    ],
    ids=" ".join,
)
def test_people_read_no_secret_setting(isrflow: Isrflow, arguments: list[str]) -> None:
    done = isrflow(*arguments)
    assert done.exit_code == 0, done.output
    assert "hunter2" not in done.output
    assert "[hidden]" in done.stdout
    assert "7000" in done.stdout, "others are shown"


def test_a_decision_keeps_everything_else(isrflow: Isrflow) -> None:
    found = [json.loads(line) for line in isrflow("decisions", "--kind", "config").stdout.splitlines()]
    by_entity = {one["entity"]: one["config"] for one in found}
    assert by_entity["broker"] == HIDDEN
    assert by_entity["cluster"] == HIDDEN | {"unclean.leader.election.enable": "true"}
    assert by_entity["topic"] == {"min.insync.replicas": "1"}


def test_the_settings_that_are_in_force_are_hidden_too() -> None:
    shown = seen("config", entity="cluster", name=None, config={}, in_force=SETTINGS)
    assert getattr(shown, "in_force", None) == HIDDEN


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ({"entity": "cluster", "config": {"sasl.jaas.config": None}}, None),
        ({"entity": "topic", "name": "t", "config": {"my.reporter.token": "seen"}}, None),
        ({"config": {"my.reporter.token": ["hunter2"]}}, {"config": {"my.reporter.token": "[hidden]"}}),
        ({"entity": "broker", "settings": SECRETS}, "withheld"),
        ('{"kind":"alter_config","config":{"ssl.key.password":"hunter2"', "withheld"),
        ('{"kind":"tick"', None),
    ],
)
def test_the_text_of_a_rejected_event_is_shown_without_secrets(
    raw: dict[str, Any] | str, shown: dict[str, Any] | str | None
) -> None:
    text = raw if isinstance(raw, str) else json.dumps({"kind": "alter_config"} | raw)
    found = getattr(seen("rejected", raw=text, field="", message=""), "raw", "")
    if isinstance(shown, dict):
        assert json.loads(found) == {"kind": "alter_config"} | shown
    else:
        assert found == text if shown is None else shown in found and "hunter2" not in found


def seen(kind: str, **fields: Any) -> AnyDecision:
    """Return a decision as people see it."""
    common = {"seq": 1, "index": 0, "controller_epoch": 1, "time_ms": 1, "reason": "CONFIG_CHANGED"}
    body = {"kind": kind, **common, **fields}
    return decode(without_secrets(json.dumps(body, separators=(",", ":")).encode()))


def test_events_keep_every_byte(isrflow: Isrflow) -> None:
    """A replay could not repeat the decisions otherwise."""
    assert isrflow("events", "--kind", "alter_config").stdout.count("hunter2") == 3 * len(SECRETS)
