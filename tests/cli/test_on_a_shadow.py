"""Commands on the bus that is the shadow of a cluster: what they show, and what they refuse."""

import json
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Entry
from cli import findings
from history.observed_operations import seqs_of_operations
from sinks.web.observed_site import ObservedSite
from streaming.past_process import PastProcess
from tests.cli.conftest import Isrflow
from tests.sinks.web.test_page import Stream
from tests.support.decided_bus import DecidedBus
from tests.support.observing import CLUSTER, TOPIC_ID, LiveShadow, Shadow, broker, partition


@pytest.fixture(autouse=True)
def shadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the shadow of a cluster in which broker 1 led t-0 and was fenced, decades ago."""
    world = Shadow()
    topic = {"topic": "t", "topic_id": TOPIC_ID}
    first = partition(0, (1, 2), (1, 2), 1, (0, 0))
    world.observe("seed", brokers=[broker(1), broker(2)], topics=[topic], partitions=[first])
    world.observe(
        "session_expired",
        evidence={"broker": 1},
        brokers=[broker(1, fenced=True)],
        partitions=[partition(0, (1, 2), (2,), 2, (2, 1))],
    )
    bus = DecidedBus(tmp_path / "bus.db")
    bus.take(world.log)
    bus.close()
    monkeypatch.setenv("ISRFLOW_BUS", str(tmp_path / "bus.db"))
    return tmp_path / "bus.db"


def test_the_health_is_that_of_the_observed_cluster(isrflow: Isrflow) -> None:
    done = isrflow("health")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "Health:                 unhealthy",
        "Reason:                 broker 1 is fenced for 0 s, since 1970-01-01T00:00:01Z (BROKER_SESSION_EXPIRED)",
        "Reason:                 1 partition is under replicated",
        f"ObservedCluster:        {CLUSTER}",
        "ObservedUntil:          offset 2 of its log, 1970-01-01T00:00:01Z",
        "Controller:             unknown",
        "ControllerEpoch:        0",
        "Brokers:                2",
        "Partitions:             1",
        "OneFailureFromOffline:  t-0",
        "AtMinIsr:               t-0",
        "UnderReplicated:        t-0",
    ]
    document = json.loads(isrflow("health", "--format", "json").stdout)
    assert document["observed"] == {"cluster_id": CLUSTER, "offset": 2, "time_ms": 1_000}


def test_an_old_state_is_no_reason_for_a_warning(isrflow: Isrflow) -> None:
    assert isrflow("topics", "list").stderr == ""


def test_a_state_is_old_while_an_operation_waits_to_be_decided(isrflow: Isrflow, shadow: Path) -> None:
    bus = EmbeddedBus(shadow)
    raw = bus.recorded(0, 1, 1, 1)[0].raw
    bus.load([Entry(3, raw, 1_000, False)])
    site = ObservedSite(bus, PastProcess(str(shadow)))
    try:
        stream = Stream(site.serve(0))
        beat = stream.next("beat")
        assert beat["age_ms"] > beat["old_after_ms"]
        stream.close()
    finally:
        site.close()
        bus.close()
    done = isrflow("health")
    assert done.exit_code == 2
    assert "what was observed is older than 10000 ms: is the engine running?" in done.stdout
    assert "s old: is the engine running?" in isrflow("topics", "list").stderr


def test_a_reader_that_has_stopped_is_told_though_nothing_waits(isrflow: Isrflow, tmp_path: Path) -> None:
    """A reader tells that nothing has changed. Once it is silent, the cluster may be another one by now."""
    live = LiveShadow(tmp_path / "live.db")
    asked = ("--bus", str(tmp_path / "live.db"))
    live.tell("seed", ago_ms=90_000, brokers=[broker(1), broker(2)])
    assert isrflow("health", *asked).exit_code == 0, "a recorded log does not grow old"
    live.tell("no_change", ago_ms=60_000, offset=1, came_after_ms=45)
    done = isrflow("health", *asked)
    assert done.exit_code == 2
    assert "what was observed is older than 10000 ms: is 'isrflow shadow run' running?" in done.stdout
    assert "is 'isrflow shadow run' running?" in isrflow("top", "--once", *asked).stdout
    assert "s old: is 'isrflow shadow run' running?" in isrflow("topics", "list", *asked).stderr
    found = {one.name: one.text for one in findings.bus(str(tmp_path / "live.db"), needed=True)}
    assert found["shadow"].endswith(" s old: start it with 'isrflow shadow run'")
    live.tell("no_change", ago_ms=1_000, offset=1, came_after_ms=45)
    done = isrflow("health", *asked)
    assert (done.exit_code, "Lag:              45 ms\n" in done.stdout) == (0, True), done.output
    assert json.loads(isrflow("health", "--format", "json", *asked).stdout)["observed"]["lag_ms"] == 45
    assert "lag 45 ms" in isrflow("top", "--once", *asked).stdout
    live.close()


@pytest.mark.parametrize(
    "words", ["topics delete t", "brokers unregister 1", "elect --election-type preferred --all-topic-partitions"]
)
def test_a_request_to_lead_is_refused_and_not_published(isrflow: Isrflow, shadow: Path, words: str) -> None:
    done = isrflow(*words.split())
    told = f"this bus is the shadow of cluster {CLUSTER}, and only observes it. Nothing was published.\n"
    assert (done.exit_code, done.stderr.endswith(told)) == (1, True), done.output
    bus = EmbeddedBus(shadow)
    assert bus.last_seq() == 2
    bus.close()


def test_events_are_not_published(isrflow: Isrflow, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"kind":"delete_topic","time_ms":0,"topic":"t"}\n')
    done = isrflow("publish", str(tmp_path / "events.jsonl"))
    assert (done.exit_code, "only observes it" in done.stderr) == (1, True), done.output


def test_decisions_say_where_the_rules_differ(isrflow: Isrflow) -> None:
    lines = isrflow("decisions", "--format", "text", "--from", "2").stdout
    assert "t-0 leader_epoch 2, by the rules 1  (RULES_DIFFER)" in lines
    done = isrflow("partitions", "explain", "t-0")
    assert "The rules would have decided otherwise: leader epoch 1, where the controller left 2." in done.stdout


def test_an_operation_is_left_out_by_its_offset(isrflow: Isrflow) -> None:
    done = isrflow("whatif", "--without-operation", "2")
    assert done.exit_code == 0, done.output
    head, *lines = done.stdout.splitlines()
    assert head == "What if without the operation at offset 2, from seq 1 through seq 2:"
    at = lines.index("Elections that differ:")
    assert lines[at + 2 : at + 4] == ["    - leader 2, ISR 2 (LEADER_FENCED)", "    + nothing changed"]
    assert lines[-1].endswith("so on each partition the effect ends with the next operation on it.")
    document = json.loads(isrflow("whatif", "--without-operation", "2", "--format", "json").stdout)
    assert (document["without_operations"], document["later_operations"]) == ([2], "as observed")
    done = isrflow("whatif", "--without-operation", "3")
    told = "Error: --without-operation 3: no operation with it was observed from seq 1 through seq 2.\n"
    assert (done.exit_code, done.stderr) == (2, told)


def test_all_parts_of_an_operation_are_found_by_any_of_its_offsets(tmp_path: Path) -> None:
    world = Shadow()
    for part in range(3):
        world.observe("seed", offset=7, last_offset=90, part=part, parts=3)
    world.observe("other", offset=91)
    bus = DecidedBus(tmp_path / "parts.db")
    bus.take(world.log)
    found = seqs_of_operations(bus.bus, (50, 91, 92), 0, 4)
    bus.close()
    assert found == {50: [1, 2, 3], 91: [4], 92: []}
