"""Turn Python's collector of reference cycles off for a while."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Start no collection during the block.

    State and decisions have no cycles, and are freed when a batch ends. While a batch loads pages, the collector would
    walk them again and again, which takes more than half of the loading time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
