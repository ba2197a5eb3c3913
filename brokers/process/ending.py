"""The end of a process of a broker, gateway or shadow: by a signal, or by an error with one line and one exit code."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator

import structlog

EXIT_REFUSED, EXIT_UNREACHABLE, EXIT_SUPERSEDED = 1, 3, 4
Kinds = tuple[type[Exception], ...]

logger = structlog.get_logger()


@contextlib.contextmanager
def told(*, superseded: Kinds = (), refused: Kinds, unreachable: Kinds) -> Iterator[None]:
    """End the process if the block raises only errors of these kinds, in groups or not.

    A ``superseded`` one counts first, then a ``refused`` one. A supervisor must not restart what was superseded.

    Not with ``except*``: several of its clauses may match one group, and two exits would make a group of exits.
    """
    try:
        yield
    except Exception as error:
        errors = _single(error)
        if not all(isinstance(one, (*superseded, *refused, *unreachable)) for one in errors):
            raise
        codes = ((superseded, EXIT_SUPERSEDED), (refused, EXIT_REFUSED), (unreachable, EXIT_UNREACHABLE))
        found = [(one, code) for kinds, code in codes for one in errors if isinstance(one, kinds)]
        first, code = found[0]
        logger.error("stopped", why=why_of(first))
        sys.exit(code)


def _single(error: BaseException) -> list[BaseException]:
    """Return the errors that an exception group holds, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        return [one for part in error.exceptions for one in _single(part)]
    return [error]


def why_of(error: BaseException) -> str:
    """Return what an error says, with its file if it has one."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or repr(error)


def stopped_by_signals(stop: Callable[[], None]) -> None:
    """Call ``stop`` on SIGTERM and SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
