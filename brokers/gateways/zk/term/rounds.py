"""Rounds of looking at something: after each change, and at each interval."""

import asyncio
import contextlib


class Rounds:
    """The rounds of one task, at least one each interval."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._changed = asyncio.Event()
        self._due_s = 0.0

    def change(self) -> None:
        """Ask for a round. A change that comes during a round counts for the next one."""
        self._changed.set()

    def begin(self) -> bool:
        """Begin a round, and return whether an interval is over."""
        self._changed.clear()
        now_s = asyncio.get_running_loop().time()
        if now_s < self._due_s:
            return False
        self._due_s = now_s + self._interval_s
        return True

    async def wait(self) -> None:
        """Wait until the next round is due."""
        left_s = self._due_s - asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            # Not ``wait_for``: in Python 3.11 it swallows a cancellation that comes just as its awaitable is done.
            async with asyncio.timeout(max(0.0, left_s)):
                await self._changed.wait()
