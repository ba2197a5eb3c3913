"""How far back the past reaches, as the command line shows it."""

import json
import re

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow


def test_a_whole_log_reaches_to_its_beginning(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    shown = isrflow("history").stdout
    assert "from seq 0, through seq 6" in shown
    assert re.search("^Events: +all$", shown, re.MULTILINE), "nothing is before the first event"
    assert re.search(r"^history\.ms of this command: +86400000$", shown, re.MULTILINE), "the bus has not the engine's"


def test_the_oldest_state_is_that_of_the_first_snapshot_behind_what_was_removed(
    isrflow: Isrflow, bus: EmbeddedBus
) -> None:
    assert bus.keep_snapshot(1)
    bus.publish([b'{"kind":"delete_topic","time_ms":9,"topic":"t"}'])
    bus.commit(1, 7, [], [])
    bus.passed(7)
    bus.forget(4)
    shown = json.loads(isrflow("history", "--format", "json", "--set", "retention.ms=-1").stdout)
    snapshot = bus.snapshots()[0]
    assert (
        (shown["states_from_seq"], shown["states_from_ms"]) == (6, snapshot.time_ms) == (snapshot.seq, snapshot.time_ms)
    )
    assert (shown["all_events_after_seq"], shown["decisions_from_seq"], shown["decided_seq"]) == (4, 5, 7)
    assert shown["settings_of_this_command"]["retention.ms"] == -1
    refused = isrflow("describe", "--at", "5")
    assert refused.exit_code == 3
    assert "the oldest one that can is that of seq 6 (history.ms and history.events say how far back" in refused.stderr
