"""Tasks of a term end with it."""

import asyncio
import inspect

import pytest

from brokers.gateways.zk.term.guarded_tasks import GuardedTasks


def test_work_that_had_no_time_to_begin_is_closed() -> None:
    async def begun_and_ended() -> str:
        tasks, work = GuardedTasks(pytest.fail), asyncio.sleep(0)
        tasks.begin(work)
        await tasks.close()
        return inspect.getcoroutinestate(work)

    assert asyncio.run(begun_and_ended()) == inspect.CORO_CLOSED
