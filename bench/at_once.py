"""Several actions at once, each in a thread."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def at_once(actions: Sequence[Callable[[], None]], threads: int | None = None) -> None:
    """Run all actions, each in a thread or in some ``threads``, and raise the error of the first that failed."""
    with ThreadPoolExecutor(threads or len(actions)) as pool:
        for done in [pool.submit(action) for action in actions]:
            done.result()
