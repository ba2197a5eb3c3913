"""Python's collector of reference cycles, and how to do without it for a while."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Start no collection meanwhile.

    State and decisions have no cycles and are freed when a batch ends. The collector walks them again and again while
    a batch loads pages, which takes more than half of the time of loading them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
