"""Several actions at once, each in a thread."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def at_once(actions: Sequence[Callable[[], None]]) -> None:
    """Run all actions, and raise the error of the first that failed."""
    with ThreadPoolExecutor(len(actions)) as pool:
        for done in [pool.submit(action) for action in actions]:
            done.result()
