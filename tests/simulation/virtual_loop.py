"""The event loop of the simulated processes, on a clock of its own.

Real coroutines of brokers, engine and clients run here unchanged. When nothing is left to do at the present
moment, time jumps to the next callback that is due. Only the callbacks' times, and the order in which they were
scheduled, decide what runs next.
"""

import asyncio
import asyncio.futures
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

START_MS = 1_700_000_000_000
CALLBACKS_MAX = 400_000
# Waking a sleeper runs no code of its process, so there is nothing to check after it.
_WAKE_UP = asyncio.futures._set_result_unless_cancelled


class Process:
    """A process as the kernel knows it. A killed one never runs code again; a paused one runs none until it resumes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.tasks: list[asyncio.Task[Any]] = []
        self.held: list[Handle] = []
        self.broker: Any = None


OUTSIDE = Process("world")
PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process", default=OUTSIDE)


class StuckError(Exception):
    """A history ran more callbacks than any should."""


class Handle:
    """One scheduled callback; asyncio cancels it, and asks when it is due."""

    __slots__ = ("args", "callback", "context", "due", "process", "stopped")

    def __init__(self, due: float, callback: Callable[..., Any], args: tuple[Any, ...], context: Any) -> None:
        self.due = due
        self.callback = callback
        self.args = args
        self.context = context if context is not None else contextvars.copy_context()
        self.process: Process = self.context.get(PROCESS, OUTSIDE)
        self.stopped = False

    def cancel(self) -> None:
        self.stopped = True

    def cancelled(self) -> bool:
        return self.stopped

    def when(self) -> float:
        return self.due


class VirtualLoop(asyncio.AbstractEventLoop):
    """An event loop that runs callbacks in order of time, then of scheduling, except those of dead processes.

    ``ran`` is called with its process after each callback that may have changed something. Exceptions of callbacks
    are kept in ``failures``, because coroutines must handle their own errors.
    """

    def __init__(self, ran: Callable[[Process], None]) -> None:
        self.now = 0.0
        self.failures: list[str] = []
        self._ran = ran
        self._processes: list[Process] = []
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._scheduled = 0
        self._count = 0

    # What asyncio asks of a loop

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        handle = Handle(self.now, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        handle = Handle(when, callback, args, context)
        self._scheduled += 1
        heapq.heappush(self._timers, (when, self._scheduled, handle))
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> Any:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        # Kept to the end, because a killed process's stack must not unwind.
        process = context.get(PROCESS, OUTSIDE) if context is not None else PROCESS.get()
        process.tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """Do a blocking call a moment later, as another thread would."""
        future = self.create_future()

        def work() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_later(0.001, work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    # What the world asks

    def start(self, process: Process, main: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``main`` in a process."""
        if process not in self._processes:
            self._processes.append(process)
        context = contextvars.Context()
        context.run(PROCESS.set, process)
        task: asyncio.Task[Any] = self.create_task(main, context=context)
        return task

    def resume(self, process: Process) -> None:
        """Resume a paused process, with all callbacks that came due in the meantime."""
        process.paused = False
        self._ready.extend(process.held)
        process.held.clear()

    def run_until(self, moment: float) -> None:
        """Run all that is due up to ``moment`` (seconds)."""
        asyncio._set_running_loop(self)
        try:
            while True:
                while self._ready:
                    self._run(self._ready.popleft())
                if not self._timers or self._timers[0][0] > moment:
                    break
                due, _, handle = heapq.heappop(self._timers)
                if not handle.stopped and handle.process.alive:
                    self.now = max(self.now, due)
                    self._ready.append(handle)
            self.now = max(self.now, moment)
        finally:
            asyncio._set_running_loop(None)

    def unwind(self) -> None:
        """End all processes and unwind their stacks, which no longer has an effect."""
        asyncio._set_running_loop(self)
        for process in self._processes:
            process.alive = False
        for process in self._processes:
            for task in process.tasks:
                with suppress(RuntimeError):  # an await while it unwinds
                    task.get_coro().close()
            process.tasks.clear()
            process.held.clear()
        self._ready.clear()
        self._timers.clear()
        asyncio._set_running_loop(None)

    def _run(self, handle: Handle) -> None:
        process = handle.process
        if handle.stopped or not process.alive:
            return
        if process.paused:
            process.held.append(handle)
            return
        self._count += 1
        if self._count > CALLBACKS_MAX:
            raise StuckError(f"{CALLBACKS_MAX} callbacks and no end")
        handle.context.run(handle.callback, *handle.args)
        if handle.callback is not _WAKE_UP:
            self._ran(process)
