"""Checks of the voters that the metadata log names (KIP-853, ``VoterSet``)."""

from collections.abc import Mapping

from state.entity import ComplaintError
from state.voter_endpoints import endpoints_of, text_of

_VOTERS_MAX = 64
_ID_MAX = 2**31 - 1
_ID_DIGITS_MAX = 10


def checked_voter(voter: str, value: str, names: Mapping[str, str | None]) -> str:
    """Return where a voter is, as it is kept. Raises ``ComplaintError``."""
    is_number = voter.isascii() and voter.isdecimal() and len(voter) <= _ID_DIGITS_MAX and str(int(voter)) == voter
    if not is_number or int(voter) > _ID_MAX:
        raise ComplaintError("INVALID_REQUEST", f"{voter!r} is not the id of a voter: expected a number from 0 on")
    try:
        return text_of(endpoints_of(value))
    except ValueError as error:
        raise ComplaintError("INVALID_REQUEST", f"voter {voter}: {error}") from error


def check_voters(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check that a log that names its voters always has some. Raises ``ComplaintError``."""
    if before and not after:
        raise ComplaintError("INVALID_UPDATE_VERSION", "a log that names its voters needs at least one")
    if len(after) > _VOTERS_MAX:
        raise ComplaintError("INVALID_REQUEST", f"{len(after)} voters: at most {_VOTERS_MAX} are allowed")
