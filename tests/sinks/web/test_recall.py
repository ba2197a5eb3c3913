"""What the page shows of the decisions from before its start: the newest ones, however many there are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus.interface import BusError
from sinks.web import recall
from sinks.web.recall import Recall
from tests.sinks.sample import decision
from tests.sinks.web.test_live import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "bus.db")
    yield made
    made.bus.close()


def decided(scene: Scene, count: int, kind: str = "leader_and_isr") -> None:
    """Commit one batch of many decisions, of which the page's thread hears nothing."""
    said = [
        decision(kind, "ISR_SHRUNK", topic="t", partition=index, seq=scene.seq + 1, index=index)
        for index in range(count)
    ]
    scene.batch(decisions=said, hidden=True)


def shown(scene: Scene) -> list[int]:
    return [group.first.seq for group in scene.live.recent.groups(200)]


def recalled(scene: Scene, after: int = 0) -> list[tuple[int, int]]:
    newest = Recall(scene.bus, lambda began_s: False).newest(after, scene.seq)
    return [(one.seq, one.index) for one, _ in newest]


def test_the_newest_decisions_are_shown_however_many_there_are(scene: Scene) -> None:
    for _ in range(30):
        decided(scene, 1)
        decided(scene, 5_000, "high_watermark")
    decided(scene, 1)
    scene.live.look()
    assert shown(scene)[:5] == [61, 59, 57, 55, 53]


def test_decisions_are_recalled_again_after_an_error(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any, **named: Any) -> Any:
        raise BusError("not now")

    decided(scene, 2)
    with monkeypatch.context() as broken:
        broken.setattr(scene.bus, "decisions", fail)
        with pytest.raises(BusError):
            scene.live.look()
    scene.live.look()
    assert shown(scene) == [1]


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let at most 40 decisions be recalled, ten at a time."""
    monkeypatch.setattr(recall, "PARTS_MAX", 4)
    monkeypatch.setattr(recall, "PART_DECISIONS", 10)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("each", [1, 3, 7, 12])
def test_they_are_the_last_ones_without_a_gap(scene: Scene, each: int) -> None:
    for _ in range(100):
        decided(scene, each)
    found = recalled(scene)
    everything = [(seq, index) for seq in range(1, 101) for index in range(each)]
    assert found == everything[-len(found) :]
    assert 10 <= len(found) <= 40
    assert recalled(scene, after=99) == everything[-each:]


@pytest.mark.usefixtures("little")
def test_many_decisions_before_a_long_rest_are_not_overlooked(scene: Scene) -> None:
    for _ in range(20):
        decided(scene, 6)
    for _ in range(30):
        decided(scene, 0)
    assert recalled(scene)[-7:] == [(19, 5), *((20, index) for index in range(6))]


@pytest.mark.usefixtures("little")
def test_of_an_event_with_too_many_decisions_the_first_ones_are_recalled(scene: Scene) -> None:
    decided(scene, 5)
    decided(scene, 60)
    decided(scene, 0)
    assert recalled(scene) == [(2, index) for index in range(40)]
