"""Python's collector of reference cycles, for processes with the state of a whole cluster."""

import contextlib
import gc
from collections.abc import Iterator

# A full collection walks all objects of a large cluster's image. That takes half a second, in which no broker is heard,
# and one large request would cause several. Garbage in cycles is rare there and mostly from errors, and the frequent
# collections of young objects find it.
_THRESHOLDS = (10_000, 20, 1_000)


def collect_rarely() -> None:
    """Make full collections rare from now on."""
    gc.set_threshold(*_THRESHOLDS)


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
