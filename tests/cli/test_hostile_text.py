"""Text in events is escaped before it reaches the terminal, where it could move the cursor or forge lines."""

from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import Isrflow
from tests.support.decided_bus import DecidedBus

HOSTILE = "\x1b[2J\n     9  broker 1 active\x9b"
SHOWN = r"\x1b[2J\n     9  broker 1 active\x9b"
EVENTS = [
    {"kind": "broker_register", "broker": 1, "incarnation": "a", "rack": HOSTILE, "principal": HOSTILE},
    {"kind": "broker_heartbeat", "broker": 1, "broker_epoch": 1, "want_fence": False, "want_shutdown": False},
    {"kind": "create_topic", "topic": "t", "partitions": 1, "replication_factor": 1, "principal": HOSTILE},
    {"kind": "delete_topic", "topic": HOSTILE, "principal": HOSTILE},
]


@pytest.fixture(autouse=True)
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = DecidedBus(tmp_path / "bus.db")
    for event in EVENTS:
        held.take([msgspec.json.encode({**event, "time_ms": 1})])
    held.bus.close()
    monkeypatch.setenv("ISRFLOW_BUS", str(tmp_path / "bus.db"))


@pytest.mark.parametrize(
    "command",
    [
        "events --format text",
        "decisions --format text",
        "partitions explain t-0",
        "describe",
        "describe --at 3",
        "brokers list",
        "brokers describe 1",
        "top --once",
    ],
)
def test_text_of_events_is_printed_with_escapes(isrflow: Isrflow, command: str) -> None:
    done = isrflow(*command.split())
    assert done.exit_code == 0, done.output
    lines = done.stdout.split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    assert SHOWN in done.stdout or command == "top --once", done.stdout
    assert "     9  broker 1 active" not in [line[:23] for line in lines]
