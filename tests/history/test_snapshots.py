"""Snapshots on the embedded bus, and thinning: the state as of every seq within reach, also after kills."""

import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from bus import embedded_history
from bus.embedded import EmbeddedBus
from bus.interface import FencedError, Image, TrimmedError
from bus.thinning import ROUTINE_DECISIONS, ROUTINE_EVENTS
from controller_logic.replay import decide
from history import log
from history.reach import BeyondReachError, reach_of
from history.state_at import state_at
from isrflow.sqlite.bus_file import Access
from state.policy import Policy
from tests.support.bus_rows import execute
from tests.support.recorded_bus import RecordedBus
from tests.support.waiting import TIMEOUT_S, wait_until

SEED, EVENTS = 4, 300
ALL = 2**62


def check_every_state(recorded: RecordedBus) -> int:
    """Compare each state within reach with the rules on the whole log. Return the first seq within reach."""
    reach = reach_of(recorded.bus)
    for seq in range(reach.state_from, reach.decided + 1, 7):
        assert state_at(recorded.bus, seq).view() == decide(recorded.entries[:seq], Policy()).view(), seq
    return reach.state_from


def test_the_state_is_rebuilt_from_the_nearest_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = RecordedBus(tmp_path / "bus.db", SEED, EVENTS)
    images: dict[int, Image] = {}
    while (seq := recorded.decide(20)) < EVENTS:
        if seq % 3 == 0:
            assert recorded.bus.keep_snapshot(0)
            images[seq] = recorded.bus.image()
    assert not any(recorded.bus.snapshot(seq) != image for seq, image in images.items())
    assert [snapshot.seq for snapshot in recorded.bus.snapshots()] == list(images)
    read: list[int] = []
    recorded_events = recorded.bus.recorded

    def counted(after: int, *rest: int) -> object:
        read.append(after)
        return recorded_events(after, *rest)

    monkeypatch.setattr(recorded.bus, "recorded", counted)
    state_at(recorded.bus, 250)
    assert min(read) == 240
    assert check_every_state(recorded) == 0
    recorded.bus.close()


def test_an_unchanged_page_is_stored_once(tmp_path: Path) -> None:
    recorded = RecordedBus(tmp_path / "bus.db", SEED, EVENTS)
    recorded.decide(50)
    for _ in range(2):
        recorded.bus.keep_snapshot(0)
    assert len(recorded.bus.snapshots()) == 1
    assert execute(recorded.bus.path, "SELECT count(*) FROM former_pages") == [(0,)]
    for seq in range(51, 56):
        recorded.decide(1)
        assert recorded.bus.snapshot(50).seq == 50, seq
    rows = execute(recorded.bus.path, "SELECT shard, page, count(*) FROM former_pages GROUP BY shard, page")
    assert rows and all(count == 1 for _, _, count in rows)
    recorded.bus.close()


def test_an_older_job_takes_no_snapshot(tmp_path: Path) -> None:
    recorded = RecordedBus(tmp_path / "bus.db", SEED, 20)
    recorded.decide(20)
    recorded.bus.claim("job", {}, 1)
    with pytest.raises(FencedError):
        recorded.bus.keep_snapshot(0)
    with pytest.raises(TrimmedError, match="no snapshot at seq 20"):
        recorded.bus.snapshot(20)
    recorded.bus.close()


def test_a_state_whose_events_are_removed_while_they_are_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = RecordedBus(tmp_path / "bus.db", SEED, EVENTS)
    recorded.decide(100)
    recorded.bus.keep_snapshot(0)
    while recorded.decide(50) < EVENTS:
        pass
    recorded_events = recorded.bus.recorded

    def after_retention(*span: int) -> object:
        while recorded.bus.thin(200):
            pass
        return recorded_events(*span)

    monkeypatch.setattr(recorded.bus, "recorded", after_retention)
    with pytest.raises(BeyondReachError, match="removed events up to seq 200 while those after seq 100 were read"):
        state_at(recorded.bus, 220)
    recorded.bus.close()


def test_a_commit_during_the_search_for_an_older_state_makes_none_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = RecordedBus(tmp_path / "bus.db", SEED, EVENTS)
    engine.decide(200)
    while engine.bus.thin(150):
        pass
    reader = EmbeddedBus(tmp_path / "bus.db", Access.READ)
    image = reader.image

    def after_a_commit() -> Image:
        engine.decide(20)
        return image()

    monkeypatch.setattr(reader, "image", after_a_commit)
    with pytest.raises(BeyondReachError, match="removed events up to seq 150"):
        state_at(reader, 200)
    reader.close()
    engine.bus.close()


def test_another_layout_leaves_older_states_as_they_were(tmp_path: Path) -> None:
    recorded = RecordedBus(tmp_path / "bus.db", SEED, EVENTS)
    recorded.decide(100)
    recorded.bus.keep_snapshot(0)
    image = recorded.bus.image()
    recorded.bus.replace_image(0, image._replace(pages=[page._replace(page=page.page * 2) for page in image.pages]))
    assert recorded.bus.snapshot(100) == image
    recorded.bus.close()


def test_thinning_leaves_what_changed_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_history, "SLICE_ROWS", 16)
    recorded = RecordedBus(tmp_path / "bus.db", SEED, EVENTS)
    while (seq := recorded.decide(20)) < EVENTS:
        recorded.bus.keep_snapshot(0)
    events, decisions = list(log.events(recorded.bus, 0, ALL)), list(log.decisions(recorded.bus, 0, ALL))
    while recorded.bus.thin(200):
        pass
    left = {entry.seq for entry in log.events(recorded.bus, 0, ALL)}
    said = {decided.seq for decided in log.decisions(recorded.bus, 0, ALL)}
    gone = [entry for entry in events if entry.seq not in left]
    assert {entry.seq for entry in gone} <= set(range(201)) - said
    assert len(gone) > 40
    assert {json.loads(entry.raw)["kind"] for entry in gone} <= set(ROUTINE_EVENTS)
    lost = [one for one in decisions if one.seq <= 200 and one not in list(log.decisions(recorded.bus, 0, 200))]
    assert {json.loads(one.body)["kind"] for one in lost} <= {*(kind.decode() for kind in ROUTINE_DECISIONS), "answer"}
    assert recorded.bus.kept_after() == 200
    assert check_every_state(recorded) == 200
    with pytest.raises(BeyondReachError, match="the oldest one that can is that of seq 200"):
        state_at(recorded.bus, 199)
    with pytest.raises(TrimmedError):
        recorded.bus.decisions((100, 0), 10)
    assert recorded.bus.decisions((0, -1), 1)[0].seq > 200, "a follower from the start gets no gaps"
    thinned = len([seq for seq in left if seq <= 200])
    assert recorded.bus.thin(200, thinned) == 0
    while recorded.bus.thin(200, 10):
        pass
    assert len([entry.seq for entry in log.events(recorded.bus, 0, 200)]) == 10
    assert seq == EVENTS
    recorded.bus.close()


def decide_and_remove(path: Path) -> None:
    """Do what an engine and its retention do, in short turns, until killed."""
    recorded = RecordedBus(path, SEED, EVENTS)
    while (seq := recorded.decide(3)) < EVENTS:
        if seq % 2:
            recorded.bus.keep_snapshot(0)
        recorded.bus.thin(seq - 60)
        recorded.bus.forget(seq - 150)


def test_no_kill_makes_a_past_state_wrong(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    watched = RecordedBus(path, SEED, EVENTS)
    for goal in (40, 90, 140, 190, 240):
        child = multiprocessing.get_context("spawn").Process(target=decide_and_remove, args=(path,))
        child.start()
        wait_until(lambda goal=goal: watched.bus.decided_seq() >= goal, f"seq {goal} to be decided")
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join(TIMEOUT_S)
        first = check_every_state(watched)
        assert watched.bus.decided_seq() - 70 <= first or goal < 70
    watched.bus.close()
