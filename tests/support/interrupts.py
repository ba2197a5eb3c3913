"""Processes that a test interrupts as Ctrl-C does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigint_is_heard() -> Iterator[None]:
    """Let processes that start in the block hear SIGINT, which a shell's background processes ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
