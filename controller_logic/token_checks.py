"""Checks of delegation tokens: their ids and their values (KIP-48; ``DelegationTokenControlManager``).

The gateway checks who may renew a token, because only it knows which token a client holds. The owner and the
renewers of a token never change, so nothing can come between that check and this one.
"""

import re
from collections.abc import Mapping

import msgspec

from state.entity import TOKEN_EXPIRY, TOKEN_ID, ComplaintError

# As Kafka prints a Uuid.
_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_PRINCIPAL = re.compile(r"[^:]+:.+", re.DOTALL)
_PRINCIPALS = ("owner", "requester")
_TIMES = ("issue_timestamp_ms", "max_timestamp_ms", TOKEN_EXPIRY)
_ALL = {*_PRINCIPALS, *_TIMES, "renewers"}
_TIME_MS_MAX = 2**63 - 1
_TIME_DIGITS_MAX = 19
_RENEWERS_MAX = 1_000
_renewers = msgspec.json.Decoder(list[str])


def check_token_names(names: Mapping[str, str | None]) -> None:
    """Check the id of a token. Raises ``ComplaintError``."""
    if set(names) != {TOKEN_ID}:
        raise ComplaintError("INVALID_REQUEST", f"name the token by its {TOKEN_ID}, and nothing else")
    if _ID.fullmatch(names[TOKEN_ID] or "") is None:
        raise ComplaintError("INVALID_REQUEST", f"{TOKEN_ID}: expected 22 characters, as Kafka prints a Uuid")


def checked_token_value(key: str, value: str, names: Mapping[str, str | None]) -> str:
    """Return one value of a token as it is kept. Raises ``ComplaintError``."""
    if key in _TIMES:
        is_number = value.isascii() and value.isdecimal() and len(value) <= _TIME_DIGITS_MAX
        if not is_number or int(value) > _TIME_MS_MAX:
            raise ComplaintError("INVALID_REQUEST", f"{key}: expected milliseconds since 1970")
        return str(int(value))
    if key in _PRINCIPALS:
        return _checked_principal(key, value)
    if key != "renewers":
        raise ComplaintError("INVALID_REQUEST", f"a delegation token consists of {', '.join(sorted(_ALL))}")
    try:
        renewers = _renewers.decode(value)
    except msgspec.DecodeError:
        raise ComplaintError("INVALID_REQUEST", "renewers: expected a JSON list of principals") from None
    if len(renewers) > _RENEWERS_MAX:
        raise ComplaintError("INVALID_REQUEST", f"renewers: at most {_RENEWERS_MAX} are allowed")
    return msgspec.json.encode([_checked_principal(key, one) for one in renewers]).decode()


def _checked_principal(key: str, value: str) -> str:
    if _PRINCIPAL.fullmatch(value) is None:
        raise ComplaintError("INVALID_REQUEST", f"{key}: expected a principal such as User:alice")
    return value


def check_token(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check a token as a whole: it is made complete, and then only its expiry changes. Raises ``ComplaintError``."""
    if not before and set(after) <= {TOKEN_EXPIRY}:
        raise ComplaintError("DELEGATION_TOKEN_NOT_FOUND", "there is no such delegation token")
    if not after:
        return
    if set(after) != _ALL:
        raise ComplaintError("INVALID_REQUEST", f"a delegation token consists of {', '.join(sorted(_ALL))}")
    if before and any(after[key] != before[key] for key in _ALL - {TOKEN_EXPIRY}):
        raise ComplaintError("INVALID_REQUEST", f"of a delegation token only {TOKEN_EXPIRY} may change")
    issued_ms, max_ms, expiry_ms = (int(after[key]) for key in _TIMES)
    if not issued_ms <= max_ms >= expiry_ms:
        raise ComplaintError("INVALID_REQUEST", "max_timestamp_ms: expected the last of the three times")
