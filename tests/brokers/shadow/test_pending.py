"""The queue between the reader and the bus keeps the order, and has a bound."""

import asyncio

import pytest

from brokers.shadow import pending
from brokers.shadow.pending import Pending


def test_events_are_published_in_order_and_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "BATCH_EVENTS", 2)
    monkeypatch.setattr(pending, "BYTES_MAX", 4)

    async def scene() -> list[list[bytes]]:
        waiting = Pending()
        await waiting.put([b"1", b"2", b"3"])
        await waiting.put([b"long", b"4"])
        await waiting.close()
        return [await waiting.next_batch() for _ in range(4)]

    assert asyncio.run(scene()) == [[b"1", b"2"], [b"3", b"long"], [b"4"], []]


def test_a_reader_waits_while_too_much_waits_for_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "BYTES_MAX", 3)

    async def scene() -> None:
        waiting = Pending()
        await waiting.put([b"1234"])
        blocked = asyncio.create_task(waiting.put([b"5"]))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not blocked.done()
        assert await waiting.next_batch() == [b"1234"]
        await blocked
        assert await waiting.next_batch() == [b"5"]

    asyncio.run(scene())
