"""Tasks whose failure ends a term."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError

logger = structlog.get_logger()


class GuardedTasks:
    """Tasks of one term. ``failed`` is called with the reason if one of them fails."""

    def __init__(self, failed: Callable[[str], None]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin work in a task."""
        task = asyncio.create_task(self.guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never awaits its work.
        task.add_done_callback(lambda _: work.close())
        return task

    async def guarded(self, work: Awaitable[None]) -> None:
        """Do work in the caller's task."""
        try:
            await work
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, ZookeeperError):
                logger.exception("the term ends", why=str(error))
            self._failed(f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
