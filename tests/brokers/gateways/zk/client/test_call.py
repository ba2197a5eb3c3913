"""The thread of a session's calls: how it ends."""

import asyncio
import threading

import pytest

from brokers.gateways.zk.client.call import SessionThread
from tests.support.waiting import TIMEOUT_S


def test_a_caller_who_is_cancelled_does_not_stop_the_end_of_the_session() -> None:
    """A gateway that is stopped while it gives a term up cancels one caller, and waits as another."""
    is_ending, may_end, ends = threading.Event(), threading.Event(), list[str]()

    def end() -> None:
        is_ending.set()
        may_end.wait(TIMEOUT_S)
        ends.append("ended")

    async def both() -> None:
        thread = SessionThread(end)
        first = asyncio.create_task(thread.close())
        await asyncio.to_thread(is_ending.wait)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        may_end.set()
        await thread.close()

    asyncio.run(both())
    assert ends == ["ended"]
