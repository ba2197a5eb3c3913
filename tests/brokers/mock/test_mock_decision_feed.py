"""How a mock broker follows decisions: each once and in order, wherever a read or a block ends."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.mock.control.decision_feed import CHUNK, DecisionFeed
from brokers.mock.settings import settings_of
from bus.embedded import EmbeddedBus
from state.decisions import AnyDecision, decode
from tests.bus.test_column_blocks import EVENT, runs_of

NO_CLAIM = 0


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    """A bus with a few decisions on its first event, and several blocks of them on its second."""
    bus = EmbeddedBus(tmp_path / "bus.db")
    for partitions in (2, 2_000):
        seq = bus.publish([EVENT])
        bus.commit(NO_CLAIM, seq, runs_of(seq, partitions), [])
    yield bus
    bus.close()


def everything(bus: EmbeddedBus) -> list[AnyDecision]:
    return [decode(one.body) for one in bus.decisions((0, -1), 100_000)]


def test_the_feed_reads_on_where_a_read_was_cut_by_its_bytes(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    read, reads = EmbeddedBus.decided_columns, []

    def cut(bus: EmbeddedBus, after: tuple[int, int], limit: int) -> object:
        reads.append(after)
        return read(bus, after, limit)[:1]

    monkeypatch.setattr(EmbeddedBus, "decided_columns", cut)
    got: list[AnyDecision] = []
    asyncio.run(DecisionFeed(bus, got.extend, settings_of({})).catch_up())
    assert got == everything(bus)
    # At least one for each decision on the first event.
    assert len(reads) > sum(one.seq == 1 for one in got)


def test_a_feed_that_stopped_within_a_block_goes_on_there(bus: EmbeddedBus) -> None:
    wanted = everything(bus)
    assert len(wanted) > 5 * CHUNK
    got: list[AnyDecision] = []
    feed = DecisionFeed(bus, got.extend, settings_of({}))

    async def scenario() -> None:
        catching_up = asyncio.create_task(feed.catch_up())
        while len(got) < 2 * CHUNK:
            await asyncio.sleep(0)
        catching_up.cancel()
        await asyncio.wait([catching_up])
        assert got == wanted[: len(got)]
        assert len(got) < len(wanted)
        await feed.catch_up()

    asyncio.run(scenario())
    assert got == wanted
