"""A progress bar for long work, on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how much of ``total`` is done while the block runs, and give a function that adds to it.

    The bar is on standard error, and disappears when the block ends. Without a terminal nothing is shown.
    """
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    # Most commands are short, so only long ones pay for this import.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda count: shown.advance(task, count)
