"""Standard output that nobody reads any more, as after ``isrflow events | head``."""

import contextlib
import os
import select
import sys
from collections.abc import Iterator

# Standard output and standard error.
_STREAMS = (1, 2)


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """End without an error if the reader of the output has closed it. Click would end with 1, as for a refusal."""
    try:
        yield
    except BrokenPipeError:
        unread = _unread()
        if not unread:
            # Another pipe, such as one to a bus.
            raise
        # What is left to print goes nowhere. Python would complain when it flushes at its exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in unread:
            os.dup2(nowhere, stream)
        os.close(nowhere)
        raise SystemExit(0) from None


def check_reader() -> None:
    """Raise ``BrokenPipeError`` if nobody reads standard output any more. A command that waits would never notice."""
    if sys.stdout is not None and 1 in _unread():
        raise BrokenPipeError


def _unread() -> list[int]:
    ends = select.poll()
    for stream in _STREAMS:
        ends.register(stream, 0)
    return [stream for stream, event in ends.poll(0) if event & (select.POLLERR | select.POLLHUP)]
