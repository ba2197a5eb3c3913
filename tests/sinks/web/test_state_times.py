"""Since when brokers do not serve: from the decisions that come, and from those on the bus after a start."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from sinks.web import state_times as of_brokers
from sinks.web.recall import Recall
from sinks.web.state_times import Since, StateTimes
from sinks.web.view import cluster_of
from state.broker import Broker, BrokerState
from tests.sinks.sample import decision
from tests.sinks.web.test_live import BROKERS, Scene

# Broker 2 was last heard 9 s before it was fenced.
HEARD_MS, FENCED_MS = 1_000_000, 1_009_000


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "bus.db")
    yield made
    made.bus.close()


def said(scene: Scene, reason: str, state: str, time_ms: int, kind: str = "broker") -> bytes:
    fields = {"broker": 2, "state": state} if kind == "broker" else {"topic": "t", "partition": 0}
    return decision(kind, reason, time_ms=time_ms, seq=scene.seq + 1, **fields)


def stands(scene: Scene, state: BrokerState, heard_ms: int = HEARD_MS) -> None:
    """Let broker 2 be in a state from the next batch on."""
    now = msgspec.structs.replace(BROKERS[2], state=state, last_contact_ms=heard_ms)
    scene.cluster = msgspec.structs.replace(scene.cluster, clock_ms=FENCED_MS, brokers=BROKERS | {2: now})


def held(scene: Scene) -> Broker:
    return scene.cluster.brokers[2]


def is_fenced(scene: Scene, *, hidden: bool = False) -> None:
    stands(scene, BrokerState.fenced)
    expired = said(scene, "BROKER_SESSION_EXPIRED", "fenced", FENCED_MS)
    scene.batch(decisions=[expired], hidden=hidden)


def shown(scene: Scene) -> dict[str, object]:
    scene.live.look()
    [row] = [one for one in cluster_of(scene.live.picture, scene.live.state_times)["brokers"] if one["broker"] == 2]
    return {name: row[name] for name in ("state", "since_ms", "reason", "heard_ms") if name in row}


FENCED = {"state": "fenced", "since_ms": FENCED_MS, "reason": "BROKER_SESSION_EXPIRED"}


def test_a_broker_that_is_fenced_while_the_page_is_served_is_shown_with_its_time(scene: Scene) -> None:
    scene.live.look()
    scene.batch()
    assert shown(scene) == {"state": "active"}
    is_fenced(scene)
    assert shown(scene) == FENCED
    scene.batch(decisions=[said(scene, "BROKER_RESTARTED", "fenced", FENCED_MS + 5)])
    assert shown(scene) == FENCED, "it was away before it restarted"
    stands(scene, BrokerState.active)
    scene.batch(decisions=[said(scene, "BROKER_UNFENCED", "active", FENCED_MS + 9)])
    assert shown(scene) == {"state": "active"}


def test_it_is_found_after_a_start_however_many_decisions_came_since(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_fenced(scene, hidden=True)
    for _ in range(5):
        scene.batch(decisions=[said(scene, "ISR_SHRUNK", "", FENCED_MS + 1, "leader_and_isr")], hidden=True)
    monkeypatch.setattr("sinks.web.recall.EVENTS_MAX", 2)
    scene.batch()
    assert shown(scene) == FENCED


def test_what_the_decisions_do_not_say_is_when_it_was_last_heard(scene: Scene) -> None:
    stands(scene, BrokerState.fenced)
    scene.batch(hidden=True)
    assert shown(scene) == {"state": "fenced", "heard_ms": HEARD_MS}
    stands(scene, BrokerState.fenced, heard_ms=-1)
    scene.batch()
    assert shown(scene) == {"state": "fenced"}


def test_what_came_before_the_last_contact_or_was_undone_is_not_taken(scene: Scene) -> None:
    stands(scene, BrokerState.fenced)
    scene.batch(decisions=[said(scene, "BROKER_REGISTERED", "fenced", HEARD_MS - 10)], hidden=True)
    scene.batch(decisions=[said(scene, "BROKER_RESTARTED", "fenced", HEARD_MS)], hidden=True)
    scene.batch(decisions=[said(scene, "BROKER_UNFENCED", "active", HEARD_MS)], hidden=True)
    is_fenced(scene, hidden=True)
    found = StateTimes()
    found.seek(scene.bus, [held(scene)])
    assert found.of(held(scene)) == Since("fenced", FENCED_MS, "BROKER_SESSION_EXPIRED")


def test_a_broker_that_is_still_heard_is_found_among_the_newest_decisions(scene: Scene) -> None:
    stands(scene, BrokerState.controlled_shutdown, heard_ms=FENCED_MS)
    begun = said(scene, "CONTROLLED_SHUTDOWN", "controlled_shutdown", HEARD_MS)
    scene.batch(decisions=[begun], hidden=True)
    scene.batch(decisions=[said(scene, "LOG_DIR_FAILED", "controlled_shutdown", FENCED_MS - 1)], hidden=True)
    found = StateTimes()
    found.seek(scene.bus, [held(scene)])
    assert found.of(held(scene)) is None
    again = StateTimes()
    again.seek(scene.bus, [held(scene)], Recall(scene.bus, lambda began_s: False))
    assert again.of(held(scene)) == Since("controlled_shutdown", HEARD_MS, "CONTROLLED_SHUTDOWN")


@pytest.mark.parametrize("hidden", [False, True])
def test_a_broker_that_may_stop_at_once_is_shutting_down_since_then(scene: Scene, *, hidden: bool) -> None:
    scene.live.look()
    stands(scene, BrokerState.controlled_shutdown)
    scene.batch(decisions=[said(scene, "CONTROLLED_SHUTDOWN", "shutdown_allowed", HEARD_MS)], hidden=hidden)
    scene.batch()
    assert shown(scene) == {"state": "controlled_shutdown", "since_ms": HEARD_MS, "reason": "CONTROLLED_SHUTDOWN"}


def test_a_search_has_an_end_and_is_done_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    is_fenced(scene, hidden=True)
    monkeypatch.setattr(of_brokers, "PARTS_MAX", 0)
    found = StateTimes()
    found.seek(scene.bus, [held(scene)])
    monkeypatch.setattr(of_brokers, "PARTS_MAX", 1)
    found.seek(scene.bus, [held(scene)])
    assert found.of(held(scene)) is None
    # It was active meanwhile.
    found.seek(scene.bus, [BROKERS[2]])
    found.seek(scene.bus, [held(scene)])
    assert found.of(held(scene)) is not None
