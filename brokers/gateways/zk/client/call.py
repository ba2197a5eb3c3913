"""Threads for the calls of ZooKeeper's client, which block."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Call(Protocol):
    """A way to make a blocking call (``SessionThread.call``)."""

    def __call__(self, call: Callable[..., T], *given: Any, **named: Any) -> Awaitable[T]: ...


async def in_own_thread(call: Callable[..., T], *given: Any) -> T:
    """Make a blocking call in a thread that nothing else uses.

    The loop's own threads look up host names. If no name server answers, all of them may be busy with that.
    """
    thread = ThreadPoolExecutor(max_workers=1)
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, partial(call, *given))
    finally:
        thread.shutdown(wait=False)


class SessionThread:
    """The thread that makes a session's calls, in order."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="zookeeper")
        self._closing: asyncio.Task[None] | None = None

    async def call(self, call: Callable[..., T], *given: Any, **named: Any) -> T:
        """Make a blocking call."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(call, *given, **named))

    def begin_to_close(self) -> "asyncio.Task[None]":
        """End the session, once, and with it the calls that wait for ZooKeeper: one may block this thread."""
        if self._closing is None:
            self._closing = asyncio.create_task(in_own_thread(self._close))
            self._closing.add_done_callback(lambda done: self._thread.shutdown(wait=False))
        return self._closing

    async def close(self) -> None:
        """End the session, and wait until it has ended. A caller that is cancelled meanwhile does not stop the end."""
        await asyncio.shield(self.begin_to_close())
