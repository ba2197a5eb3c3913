"""How a gateway starts on a bus that trims events and decisions independently, as Kafka does."""

from pathlib import Path
from typing import Any, cast

import pytest

from brokers.gateways.kraft.log.errors import StorageError
from bus.interface import AFTER_ALL_OF, Bus, Decided, DecidedColumns, Entry, TrimmedError
from tests.brokers.gateways.kraft.storages import (
    BEGINNING,
    beats,
    follow,
    gateway,
    opened,
    registered,
    story,
    topic,
    whole,
)
from tests.support.decided_bus import DecidedBus


class TopicsOfDecisions:
    """A stand-in for a bus on Kafka: decisions up to ``gone`` are removed, events are not, and seqs have gaps."""

    def __init__(self, bus: Bus, gone: tuple[int, int]) -> None:
        self._bus = bus
        self._gone = gone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    def read(self, after: int, through: int) -> list[Entry]:
        return []

    def decisions(self, after: tuple[int, int], limit: int) -> list[Decided]:
        if after[0] > 0 and after < self._gone:
            raise TrimmedError(f"decisions up to {self._gone} were removed")
        return self._bus.decisions(max(after, self._gone), limit)

    def decided_columns(self, after: tuple[int, int], limit: int) -> list[Decided | DecidedColumns]:
        return [*self.decisions(after, limit)]


def trimmed(decided: DecidedBus, *gone: int) -> Bus:
    return cast(Bus, TopicsOfDecisions(decided.bus, (gone[0], gone[1])))


@pytest.mark.parametrize("gone", [(1, 0), (9, AFTER_ALL_OF)])
def test_an_empty_log_is_not_built_from_trimmed_decisions(
    decided: DecidedBus, tmp_path: Path, gone: tuple[int, int]
) -> None:
    decided.take(story())
    with pytest.raises(StorageError, match=r"ends at offset 0, .* removed from the bus"):
        opened(tmp_path / "log", trimmed(decided, *gone))


def test_a_log_is_rebuilt_when_all_decisions_are_there(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    complete, storage = (
        opened(tmp_path / name, bus) for name, bus in (("a", decided.bus), ("b", trimmed(decided, 0, 0)))
    )
    follow(complete, decided.bus)
    follow(storage, decided.bus)
    assert whole(storage) == whole(complete)
    storage.close()
    complete.close()


def test_a_log_stands_in_for_trimmed_decisions(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take([*BEGINNING, topic("wide", 9)])
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    held = whole(storage)
    storage.close()
    cut = decided.bus.last_seq()
    for index in range(10):
        bus = trimmed(decided, cut, index)
        storage = opened(tmp_path / "log", bus)
        follow(storage, bus)
        assert whole(storage) == held
        storage.close()


def test_a_quorum_starts_from_the_state_when_early_decisions_are_gone(decided: DecidedBus, tmp_path: Path) -> None:
    before = [one for one in story() if b"gateway" not in one]
    decided.take(before)
    storage = opened(tmp_path / "log", trimmed(decided, 9, AFTER_ALL_OF))
    assert storage.decided_seq == len(before)
    decided.take([gateway("a")])
    follow(storage, decided.bus)
    complete = opened(tmp_path / "complete", decided.bus)
    follow(complete, decided.bus)
    assert whole(storage) == whole(complete)
    storage.close()
    complete.close()


def test_a_note_before_the_first_leader_does_not_hide_that_decisions_are_gone(
    decided: DecidedBus, tmp_path: Path
) -> None:
    """A gateway ended before any led the quorum. Only a note in its log says how far it had read."""
    decided.take([registered(1), registered(2), registered(3), *beats((1, 1), (2, 2), (3, 3)), topic("early")])
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    storage.close()
    last = decided.bus.decisions((0, -1), 1_000)[-1]
    bus = trimmed(decided, last.seq, last.idx)
    decided.take([topic("late")])
    storage = opened(tmp_path / "log", bus)
    decided.take([gateway("a")])
    follow(storage, bus)
    assert set(storage.image.topic_ids) == {"early", "late"}
    complete = opened(tmp_path / "complete", decided.bus)
    follow(complete, decided.bus)
    assert whole(storage) == whole(complete)
    complete.close()
    storage.close()
