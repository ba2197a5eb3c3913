"""How a gateway reads decisions from the bus: whole events of any size, without blocking requests."""

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from brokers.engine.alike_decisions import GivenDecision
from brokers.gateways.kraft.following.decision_feed import DecisionFeed
from brokers.gateways.kraft.log.comparison import events
from brokers.gateways.kraft.log.prepared import Event, Prepared
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.shared import whole_events as reading
from brokers.gateways.shared.read_watch import ReadWatch
from brokers.gateways.shared.whole_events import UnknownDecisionError, whole_events
from bus.interface import Decided
from state.decisions import decode
from tests.brokers.gateways.kraft import storages
from tests.brokers.gateways.kraft.storages import BEGINNING, opened, story, topic, whole
from tests.support.decided_bus import DecidedBus
from tests.support.waiting import TIMEOUT_S

ALL = 10_000


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 12, ALL])
def test_an_event_is_never_split_and_a_large_one_is_read_once(
    decided: DecidedBus, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    decided.take([*BEGINNING, topic("narrow", 1), topic("wide", 40), topic("narrow-too", 1)])
    everything = [decode(one.body) for one in decided.bus.decisions((0, -1), ALL)]
    decided_columns = decided.bus.decided_columns
    reads = 0

    def counted(after: tuple[int, int], limit: int) -> list[reading.Row]:
        nonlocal reads
        read = decided_columns(after, limit)
        reads += len(read)
        return read

    monkeypatch.setattr(decided.bus, "decided_columns", counted)
    monkeypatch.setattr(reading, "CHUNK", chunk)
    groups: list[list[GivenDecision]] = []
    while found := whole_events(decided.bus, groups[-1][0].seq if groups else 0):
        groups += found
    assert groups == [list(group) for _, group in groupby(everything, key=lambda one: one.seq)]
    # Each call reads the event again that the last chunk cut off, and asks for one more decision of it.
    assert reads <= len(everything) + (chunk + 1) * (len(groups) + 1)


@pytest.mark.parametrize("bytes_max", [1, 400, 1_000, 4_000])
def test_an_event_is_not_split_where_a_chunk_is_cut_by_its_bytes(
    decided: DecidedBus, monkeypatch: pytest.MonkeyPatch, bytes_max: int
) -> None:
    decided.take([*BEGINNING, topic("narrow", 1), topic("wide", 40), topic("narrow-too", 1)])
    decisions = decided.bus.decisions
    everything = [decode(one.body) for one in decisions((0, -1), ALL)]
    monkeypatch.setattr(decided.bus, "decided_columns", lambda after, limit: decisions(after, limit, bytes_max))
    monkeypatch.setattr(reading, "SURELY_UNCUT_BYTES", 0)
    groups: list[list[GivenDecision]] = []
    while found := whole_events(decided.bus, groups[-1][0].seq if groups else 0):
        groups += found
    assert groups == [list(group) for _, group in groupby(everything, key=lambda one: one.seq)]


def test_a_gateway_reads_beside_its_loop(decided: DecidedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided.take(story())
    decided_columns, threads = decided.bus.decided_columns, set()

    def noted(after: tuple[int, int], limit: int) -> list[reading.Row]:
        threads.add(threading.current_thread())
        return decided_columns(after, limit)

    storage = opened(tmp_path / "log", decided.bus)
    monkeypatch.setattr(decided.bus, "decided_columns", noted)
    monkeypatch.setattr(reading, "CHUNK", 5)
    seqs: list[int] = []

    def heard(events: Sequence[Event]) -> Iterator[None]:
        seqs.extend(event.seq for event in events)
        yield

    async def followed() -> None:
        feed = DecisionFeed(decided.bus, storage, heard, Settings(), ReadWatch(60))
        task = asyncio.create_task(feed.run())
        await asyncio.wait_for(feed.caught_up.wait(), 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(followed())
    assert threading.main_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)
    assert seqs == sorted({one.seq for one in decided.bus.decisions((0, -1), ALL)})
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
    feed = DecisionFeed(decided.bus, storage, lambda events: (), Settings(), ReadWatch(60))
    said = f"decision {seq} cannot be read by this isrflow .*'kind_of_later'.*: start a newer isrflow"
    with pytest.raises(UnknownDecisionError, match=said):
        asyncio.run(feed.run())
    storage.close()
    # A start compares the log with the decisions.
    with pytest.raises(UnknownDecisionError, match=said):
        list(events(decided.bus, 0))


class BusyDisk:
    """The log's waits for the disk. The first one lasts until ``ready`` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits = 0
        self.is_waited_for, self.ready = threading.Event(), threading.Event()
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self._wait)

    def _wait(self, descriptor: int) -> None:
        self.waits += 1
        self.is_waited_for.set()
        assert self.ready.wait(TIMEOUT_S), "the event loop stands still while the disk is waited for"
        self._sync(descriptor)


def test_the_loop_continues_while_the_disk_is_busy_and_one_wait_then_covers_all(
    decided: DecidedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided.take([*BEGINNING, *[topic(f"t{number}") for number in range(6)]])
    storage = opened(tmp_path / "log", decided.bus)
    monkeypatch.setattr(reading, "CHUNK", 12)
    disk = BusyDisk(monkeypatch)
    prepared = threading.Semaphore(0)
    prepare = storage.prepared

    def counted(*given: Any) -> Prepared:
        result = prepare(*given)
        prepared.release()
        return result

    monkeypatch.setattr(storage, "prepared", counted)
    ends: list[tuple[int, int]] = []

    def heard(events: Sequence[Event]) -> Iterator[None]:
        ends.append((events[-1].seq, storage.end_offset))
        yield

    async def followed() -> None:
        feed = DecisionFeed(decided.bus, storage, heard, Settings(), ReadWatch(60))
        task = asyncio.create_task(feed.run())
        # The event loop is not blocked, so these lines run while the first chunk is being written.
        await asyncio.to_thread(disk.is_waited_for.wait, TIMEOUT_S)
        for _ in range(3):
            assert await asyncio.to_thread(prepared.acquire, timeout=TIMEOUT_S), "the next chunks are read meanwhile"
        assert (storage.end_offset, storage.read(0, 1_000), ends) == (0, b"", []), "nobody reads what is not on disk"
        disk.ready.set()
        await asyncio.wait_for(feed.caught_up.wait(), TIMEOUT_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(followed())
    assert ends[-1] == (decided.bus.last_seq(), storage.end_offset)
    # Two waits for the first chunk, and two for the rest or, if reading was slower, for its parts.
    assert disk.waits == 2 * len(ends) < 2 * prepared_chunks(decided)
    storage.close()
    complete = opened(tmp_path / "complete", decided.bus)
    storages.follow(complete, decided.bus)
    again = opened(tmp_path / "log", decided.bus)
    assert whole(again) == whole(complete)
    again.close()
    complete.close()


def prepared_chunks(decided: DecidedBus) -> int:
    chunks, after = 0, 0
    while found := whole_events(decided.bus, after):
        chunks, after = chunks + 1, found[-1][0].seq
    return chunks


def test_other_tasks_run_between_the_portions_of_a_large_event(
    decided: DecidedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided.take(BEGINNING)
    storage = opened(tmp_path / "log", decided.bus)
    portions, turns = list[int](), 0

    def heard(events: Sequence[Event]) -> Iterator[None]:
        for _ in range(100):
            portions.append(turns)
            yield

    async def followed() -> None:
        nonlocal turns
        feed = DecisionFeed(decided.bus, storage, heard, Settings(), ReadWatch(60))
        catching_up = asyncio.create_task(feed.catch_up())
        while not catching_up.done():
            turns += 1
            await asyncio.sleep(0)
        await catching_up

    asyncio.run(followed())
    assert len(portions) == len(set(portions)) == 100
    storage.close()
