"""The first error of the disk while a log is served. It ends the gateway, and the next start mends the log.

Otherwise a leading gateway whose log cannot be read would stay the leader, and answer each fetch with an error.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import NoReturn

from brokers.files import TOO_MANY_OPEN


class DiskFailure:
    """The first error of the disk in a block of ``noted``, if any. It belongs to one event loop."""

    def __init__(self) -> None:
        self._error: OSError | None = None
        self._has_failed = asyncio.Event()

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note an error that ends this block."""
        try:
            yield
        except OSError as error:
            if error.errno not in TOO_MANY_OPEN:
                self._error = self._error or error
                self._has_failed.set()
            raise

    def check(self) -> None:
        """Raise the error, if there was one."""
        if self._error is not None:
            raise self._error

    async def raised(self) -> NoReturn:
        """Wait for an error, and raise it."""
        while True:
            await self._has_failed.wait()
            self.check()
