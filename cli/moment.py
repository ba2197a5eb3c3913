"""The seq that an option such as --at names."""

from collections.abc import Callable

import click

from bus.clock import now_ms
from bus.interface import Bus
from cli.errors import WrongUse
from history.moment import is_after, seq_of_moment

AT_HELP = "As of this event or time: a seq, 2026-11-22T13:40:00, 13:40, or how long ago, such as 10m."
at_option = click.option("--at", metavar="SEQ|TIME", help=AT_HELP)


def seq_named(bus: Bus, option: str, text: str, seq_of: Callable[[Bus, str, int], int] = seq_of_moment) -> int:
    """Return the seq that ``text`` names by ``seq_of``. Raises ``WrongUse``, which names the option."""
    try:
        return seq_of(bus, text, now_ms())
    except ValueError as error:
        raise WrongUse(f"{option}: {error}") from error


def check_span(start: str | None, end: str | None, after: int, through: int) -> None:
    """Check that a range can hold an event: seqs after ``after``, up to ``through``, which two options named.

    Raises ``WrongUse`` if the range is empty or the wrong way round.
    """
    if after < through:
        return
    if start is not None and end is not None and (after > through or is_after(start, end, now_ms())):
        raise WrongUse(f"--from {start} is after --to {end}.")
    named = [f"{option} {text}" for option, text in (("--from", start), ("--to", end)) if text is not None]
    raise WrongUse(f"there is no event in the range {' '.join(named)}.")
