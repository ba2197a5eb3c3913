"""Periodic looks end with the task that makes them."""

import asyncio

import pytest

from brokers.gateways.zk.term.rounds import Rounds


@pytest.mark.parametrize("steps", range(6))
def test_a_task_that_is_cancelled_just_as_something_changes_begins_no_further_round(steps: int) -> None:
    """A term ends when all of its tasks have ended, so one that went on would be the last that its gateway did."""

    async def looked() -> int:
        rounds, count = Rounds(60.0), 0

        async def look() -> None:
            nonlocal count
            while True:
                rounds.begin()
                count += 1
                await rounds.wait()

        task = asyncio.create_task(look())
        for _ in range(10):
            await asyncio.sleep(0)
        rounds.change()
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert task.cancelled()
        return count

    assert asyncio.run(looked()) in (1, 2)


def test_a_round_is_due_after_an_interval_or_a_change() -> None:
    async def waited() -> None:
        often, seldom = Rounds(0.01), Rounds(60.0)
        assert often.begin()
        await often.wait()
        assert often.begin()
        assert seldom.begin()
        seldom.change()
        await seldom.wait()
        assert not seldom.begin()

    asyncio.run(waited())
