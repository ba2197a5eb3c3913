"""How far back the past reaches, as the command line shows it."""

import json
import re

from bus.embedded import EmbeddedBus
from conf.settings import Settings, history_limits
from tests.cli.conftest import Isrflow


def test_a_whole_log_reaches_to_its_beginning(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    shown = isrflow("history").stdout
    assert "from seq 0, through seq 6" in shown
    assert re.search("^Events: +all$", shown, re.MULTILINE), "nothing is before the first event"
    assert re.search(r"^history\.ms of the engine: +unknown$", shown, re.MULTILINE), "its claim does not say"


def test_the_oldest_state_is_that_of_the_first_snapshot_behind_what_was_removed(
    isrflow: Isrflow, bus: EmbeddedBus
) -> None:
    assert bus.keep_snapshot(1)
    bus.publish([b'{"kind":"delete_topic","time_ms":9,"topic":"t"}'])
    bus.commit(1, 7, [], [])
    bus.passed(7)
    bus.forget(4)
    shown = json.loads(isrflow("history", "--format", "json").stdout)
    snapshot = bus.snapshots()[0]
    assert (
        (shown["states_from_seq"], shown["states_from_ms"]) == (6, snapshot.time_ms) == (snapshot.seq, snapshot.time_ms)
    )
    assert (shown["all_events_after_seq"], shown["decisions_from_seq"], shown["decided_seq"]) == (4, 5, 7)
    assert shown["settings_of_the_engine"]["retention.ms"] is None
    refused = isrflow("describe", "--at", "5")
    assert refused.exit_code == 3
    assert "the oldest one that can is that of seq 6 (history.ms and history.events say how far back" in refused.stderr


def test_the_limits_are_those_of_the_engine_that_claimed_last(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    for retention_ms in (5, 7):
        limits = history_limits(Settings(retention_ms=retention_ms, history_ms=9))
        bus.claim("job", {name: str(value) for name, value in limits.items()}, 1)
    shown = json.loads(isrflow("history", "--format", "json", "--set", "retention.ms=-1").stdout)
    assert shown["settings_of_the_engine"] == limits
    assert "retention.ms of the engine: " in isrflow("history").stdout
