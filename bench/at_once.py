"""Several actions at once, each in a thread."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def at_once(actions: Sequence[Callable[[], None]]) -> None:
    """Do all of them, and raise the first one's error if any failed."""
    with ThreadPoolExecutor(len(actions)) as pool:
        for done in [pool.submit(action) for action in actions]:
            done.result()
