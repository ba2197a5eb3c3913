"""The seq that an option such as --at names."""

from bus.clock import now_ms
from bus.interface import Bus
from cli.errors import WrongUse
from history.moment import seq_of_moment

AT_HELP = "As of this event or time: a seq, 2026-11-22T13:40:00, or how long ago, such as 10m."


def seq_named(bus: Bus, option: str, text: str) -> int:
    """Return the seq that ``text`` names. Raises ``WrongUse``, which names the option."""
    try:
        return seq_of_moment(bus, text, now_ms())
    except ValueError as error:
        raise WrongUse(f"{option}: {error}") from error
