"""Standard output that is closed, or whose reader has left, as after ``isrflow events | head``."""

import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Iterator, Sequence

# Standard output and standard error.
_STREAMS = (1, 2)


class _Closed(io.RawIOBase):
    """Standard output that was closed before the process started. What is printed fails, as on a full disk."""

    def writable(self) -> bool:
        return True

    def write(self, printed: object) -> int:
        raise OSError(errno.EBADF, "standard output is closed, so nothing can be printed.")


def _closed() -> _Closed | None:
    """Return what stands for standard output if it is closed."""
    output = getattr(sys.stdout, "buffer", None)
    return output if isinstance(output, _Closed) else None


def fail_if_closed() -> None:
    """Make each print fail if standard output is closed. Click alone would print nothing and report no error."""
    if sys.stdout is None:
        # It buffers no text, so Python has nothing to print when it exits.
        sys.stdout = io.TextIOWrapper(_Closed(), encoding="utf-8", write_through=True)


def print_nowhere() -> None:
    """Let prints succeed and go nowhere if standard output is closed, because libraries print too.

    When the process started, it opened the descriptor of a closed standard output to nowhere.
    """
    if _closed():
        sys.stdout = os.fdopen(1, "w", closefd=False)


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
        _lead_nowhere(unread)
        raise SystemExit(0) from None
    except OSError:
        # It may be of something else than the output. If it is of the output, Python 3.14 keeps what was not printed.
        try:
            sys.stdout.flush()
        except OSError:
            _lead_nowhere([1])
        raise


def _lead_nowhere(streams: Sequence[int]) -> None:
    """Let what is left to print go nowhere. Otherwise Python complains when it flushes at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream)
    os.close(nowhere)


def check_open() -> None:
    """Raise an ``OSError`` if standard output is closed.

    A command that changes something and then prints what it did calls this first. Otherwise a user who ran it again
    after the error would make the change twice.
    """
    if closed := _closed():
        closed.write(b"")


def check_reader() -> None:
    """Raise an ``OSError`` if standard output has no reader, which a command that waits would never notice.

    It is a ``BrokenPipeError`` if the reader has left.
    """
    check_open()
    if 1 in _unread():
        raise BrokenPipeError


def _unread() -> list[int]:
    ends = select.poll()
    for stream in _STREAMS:
        ends.register(stream, 0)
    return [stream for stream, event in ends.poll(0) if event & (select.POLLERR | select.POLLHUP)]
