"""The seq that a user names, as a number or as a time."""

import re
from datetime import UTC, datetime, time, timedelta

from bus.interface import Bus
from history.reach import BeyondReachError

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"-?([0-9]{1,12})(ms|s|m|h|d)")
_OF_DAY = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2})?(Z?)")
# A user may have read a time from a clock that is this far ahead of this machine's.
AHEAD_MAX_MS = 60_000
EXPECTED = (
    "expected a seq, a time such as 2026-11-22T13:40:00, 2026-11-22T13:40:00Z or 13:40, or how long ago, such as 10m"
)


def time_ms_of(text: str, now_ms: int) -> int:
    """Read a time in ISO 8601 (local unless it says otherwise), or how long before ``now_ms`` it was.

    A time of day is the last such time before ``now_ms``.
    Raises ``ValueError`` that says what was expected.
    """
    if ago := _AGO.fullmatch(text):
        return now_ms - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        if of_day := _OF_DAY.fullmatch(text):
            now = datetime.fromtimestamp(now_ms / 1_000, UTC if of_day[1] else None)
            found = datetime.combine(now.date(), time.fromisoformat(text.removesuffix("Z")), now.tzinfo)
            return int((found if found <= now else found - timedelta(days=1)).timestamp() * 1_000)
        return int(datetime.fromisoformat(text).timestamp() * 1_000)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{text!r} is not a moment: {EXPECTED}") from error


def first_seq_since(bus: Bus, text: str, now_ms: int) -> int:
    """Return the seq that ``text`` names. For a time, return the first seq that an event since then can have.

    Raises ``ValueError`` for a text that is neither, or for the future.
    """
    named = _seq_in(text)
    if named is not None:
        return named
    time_ms = time_ms_of(text, now_ms)
    before = bus.seq_at(time_ms - 1)
    _check_past(bus, text, time_ms, now_ms, before)
    return before + 1


def is_after(text: str, other: str, now_ms: int) -> bool:
    """Return whether both texts are seqs, or both times, and the first one is later. Raises ``ValueError``."""
    seq, other_seq = _seq_in(text), _seq_in(other)
    if seq is None and other_seq is None:
        return time_ms_of(text, now_ms) > time_ms_of(other, now_ms)
    return seq is not None and other_seq is not None and seq > other_seq


def _check_past(bus: Bus, text: str, time_ms: int, now_ms: int, seq: int) -> None:
    # Events may have later times, if the clock was set back since.
    if time_ms > now_ms + AHEAD_MAX_MS and seq >= bus.last_seq():
        raise ValueError(f"{text!r} is in the future, of which nothing is known")


def last_seq_until(bus: Bus, text: str, now_ms: int) -> int:
    """Return the seq that ``text`` names. For a time, return the seq of the last event up to then.

    Raises ``ValueError`` for a text that is neither.
    """
    seq = _seq_in(text)
    return bus.seq_at(time_ms_of(text, now_ms)) if seq is None else seq


def _seq_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def seq_of_moment(bus: Bus, text: str, now_ms: int) -> int:
    """Return the seq that ``text`` names. For a time, return the seq of the last decided event that had come by then.

    Raises ``ValueError`` for a text that is neither, or for the future, and ``BeyondReachError`` for a time before all
    events, or before all that are left.
    """
    named = _seq_in(text)
    if named is not None:
        return named
    time_ms = time_ms_of(text, now_ms)
    seq = bus.seq_at(time_ms)
    _check_past(bus, text, time_ms, now_ms, seq)
    if seq == 0:
        if bus.kept_after() > 0:
            raise BeyondReachError(f"no event from {text} or before is left: retention has removed it")
        raise BeyondReachError(f"no event had come by {text}: 'isrflow events --limit 1' shows the first one")
    return min(seq, bus.decided_seq())
