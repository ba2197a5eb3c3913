"""How brokers of both kinds follow the decisions and publish events while the bus comes and goes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from brokers.engine.follow import LOOK_MS, follow, looked
from brokers.engine.publisher import Publisher
from brokers.engine.retry import retry
from bus.embedded import EmbeddedBus
from bus.interface import BusError, TrimmedError

UNREACHABLE_MAX_MS = 10_000


class Feed:
    """A feed whose looks and reads have the given results; the last result cancels the reader."""

    def __init__(self, *results: bool | Exception) -> None:
        self.calls: list[str] = []
        self._results = iter(results)

    async def has_news(self) -> bool:
        return self._next("look")

    async def catch_up(self) -> None:
        self._next("read")

    def _next(self, call: str) -> bool:
        self.calls.append(call)
        result = next(self._results, asyncio.CancelledError())
        if isinstance(result, BaseException):
            raise result
        return result


def calls_of(feed: Feed, ends_with: type[BaseException] = asyncio.CancelledError) -> list[str]:
    async def followed() -> None:
        with pytest.raises(ends_with):
            await follow(feed, 1, UNREACHABLE_MAX_MS)

    asyncio.run(followed())
    return feed.calls


def test_decisions_are_read_only_after_news() -> None:
    assert calls_of(Feed(False, False, True, True)) == ["look", "look", "look", "read", "look"]


def test_a_failed_read_is_repeated_without_asking_for_news() -> None:
    assert calls_of(Feed(True, BusError("gone"), True)) == ["look", "read", "read", "look"]


def test_decisions_are_read_after_asking_for_news_failed() -> None:
    assert calls_of(Feed(BusError("gone"), True)) == ["look", "read", "look"]


def test_removed_decisions_end_a_reader_at_once() -> None:
    assert calls_of(Feed(True, TrimmedError("removed")), TrimmedError) == ["look", "read"]


def test_a_look_ends_with_the_first_change_or_after_a_bound() -> None:
    answers = iter([False, False, True])
    assert looked(lambda: next(answers), 1)
    asked = 0

    def unchanged() -> bool:
        nonlocal asked
        asked += 1
        return False

    assert not looked(unchanged, LOOK_MS // 5)
    assert 2 <= asked <= 7


def test_an_unreachable_bus_is_given_up_after_a_bound() -> None:
    attempts = 0

    async def fails() -> None:
        nonlocal attempts
        attempts += 1
        raise BusError("gone")

    with pytest.raises(BusError):
        asyncio.run(retry(fails, 60))
    assert attempts > 1


def test_the_bound_counts_from_the_first_failure() -> None:
    attempts = 0

    async def slow() -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await asyncio.sleep(0.05)
            raise BusError("gone after a long wait")
        return attempts

    assert asyncio.run(retry(slow, 20)) == 2


def test_an_event_withdrawn_between_attempts_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    publish, waiting = bus.publish, [b'{"kind":"a"}', b'{"kind":"b"}']

    def fails_once(events: Sequence[bytes]) -> int:
        monkeypatch.setattr(bus, "publish", publish)
        waiting.pop(0)
        raise BusError("gone")

    monkeypatch.setattr(bus, "publish", fails_once)
    publisher = Publisher(bus, UNREACHABLE_MAX_MS, "publisher")

    async def story() -> Any:
        return await publisher.publish(lambda: list(waiting)), await publisher.publish(list)

    assert asyncio.run(story()) == (1, None)
    publisher.close()
    assert [entry.raw for entry in bus.read(0, bus.last_seq())] == [b'{"kind":"b"}']
    bus.close()
