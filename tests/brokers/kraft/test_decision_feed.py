"""How a gateway reads decisions from the bus: whole events of any size, without blocking requests."""

import asyncio
import threading
from itertools import groupby
from pathlib import Path

import pytest

from brokers.gateways.kraft.decision_feed import DecisionFeed
from brokers.gateways.kraft.log import whole_events as reading
from brokers.gateways.kraft.log.comparison import events
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.log.whole_events import whole_events
from brokers.gateways.kraft.read_watch import ReadWatch
from brokers.gateways.kraft.settings import Settings
from bus.interface import Decided
from tests.brokers.kraft import storages
from tests.brokers.kraft.storages import BEGINNING, opened, story, topic, whole
from tests.support.decided_bus import DecidedBus

ALL = 10_000


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 12, ALL])
def test_an_event_is_never_split_and_a_large_one_is_read_once(
    decided: DecidedBus, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    decided.take([*BEGINNING, topic("narrow", 1), topic("wide", 40), topic("narrow-too", 1)])
    decisions = decided.bus.decisions
    everything = decisions((0, -1), ALL)
    reads = 0

    def counted(after: tuple[int, int], limit: int) -> list[Decided]:
        nonlocal reads
        read = decisions(after, limit)
        reads += len(read)
        return read

    monkeypatch.setattr(decided.bus, "decisions", counted)
    monkeypatch.setattr(reading, "CHUNK", chunk)
    groups: list[list[Decided]] = []
    while found := whole_events(decided.bus, groups[-1][0].seq if groups else 0):
        groups += found
    assert groups == [list(group) for _, group in groupby(everything, key=lambda one: one.seq)]
    # Each call reads the event again that the last chunk cut off.
    assert reads <= len(everything) + chunk * (len(groups) + 1)


def test_a_gateway_reads_beside_its_loop(decided: DecidedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided.take(story())
    decisions, threads = decided.bus.decisions, set()

    def noted(after: tuple[int, int], limit: int) -> list[Decided]:
        threads.add(threading.current_thread())
        return decisions(after, limit)

    storage = opened(tmp_path / "log", decided.bus)
    monkeypatch.setattr(decided.bus, "decisions", noted)
    monkeypatch.setattr(reading, "CHUNK", 5)
    seqs: list[int] = []

    async def followed() -> None:
        feed = DecisionFeed(decided.bus, storage, lambda event: seqs.append(event[0].seq), Settings(), ReadWatch(60))
        task = asyncio.create_task(feed.run())
        await asyncio.wait_for(feed.caught_up.wait(), 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(followed())
    assert threading.main_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)
    assert seqs == sorted({one.seq for one in decisions((0, -1), ALL)})
    complete = opened(tmp_path / "complete", decided.bus)
    storages.follow(complete, decided.bus)
    assert whole(storage) == whole(complete)
    storage.close()
    complete.close()


def test_a_decision_of_a_later_version_asks_for_a_newer_isrflow(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    storage = opened(tmp_path / "log", decided.bus)
    storages.follow(storage, decided.bus)
    seq = decided.bus.publish([b"{}"])
    later = Decided(seq, 0, b'{"kind":"kind_of_later","seq":%d}' % seq)
    decided.bus.commit(decided.bus.claimed_epoch(), seq, [later], [])
    feed = DecisionFeed(decided.bus, storage, lambda event: None, Settings(), ReadWatch(60))
    said = f"decision {seq} cannot be read by this isrflow .*'kind_of_later'.*: start a newer isrflow"
    with pytest.raises(StorageError, match=said):
        asyncio.run(feed.run())
    storage.close()
    # A start compares the log with the decisions.
    with pytest.raises(StorageError, match=said):
        list(events(decided.bus, 0))
