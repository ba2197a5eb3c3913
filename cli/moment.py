"""The seq that an option such as --at names."""

from collections.abc import Callable

from bus.clock import now_ms
from bus.interface import Bus
from cli.errors import WrongUse
from history.moment import first_seq_since, last_seq_until, seq_of_moment

AT_HELP = "As of this event or time: a seq, 2026-11-22T13:40:00, 13:40, or how long ago, such as 10m."


def seq_named(bus: Bus, option: str, text: str) -> int:
    """Return the seq that ``text`` names. Raises ``WrongUse``, which names the option."""
    return _named(seq_of_moment, bus, option, text)


def start_named(bus: Bus, option: str, text: str) -> int:
    """Return the seq at which a range that begins at ``text`` starts. Raises ``WrongUse``, which names the option."""
    return _named(first_seq_since, bus, option, text)


def end_named(bus: Bus, option: str, text: str) -> int:
    """Return the seq at which a range that ends at ``text`` stops. Raises ``WrongUse``, which names the option."""
    return _named(last_seq_until, bus, option, text)


def _named(seq_of: Callable[[Bus, str, int], int], bus: Bus, option: str, text: str) -> int:
    try:
        return seq_of(bus, text, now_ms())
    except ValueError as error:
        raise WrongUse(f"{option}: {error}") from error
