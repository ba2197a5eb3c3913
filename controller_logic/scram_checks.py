"""Checks of SCRAM credentials: their users and their values (KIP-554; ``ScramControlManager``).

No message repeats a value, because values are secret.
"""

import base64
import binascii
from collections.abc import Mapping

from state.entity import ComplaintError

# By mechanism: the length of its keys.
_KEY_BYTES = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}
_ITERATIONS_MIN, _ITERATIONS_MAX = 4_096, 16_384
_ITERATIONS_DIGITS_MAX = 10
_BYTES = ("salt", "server_key", "stored_key")
_ALL = {*_BYTES, "iterations"}
_SALT_BYTES_MAX = 1_024


def check_scram_names(names: Mapping[str, str | None]) -> None:
    """Check the user and the mechanism of a credential. Raises ``ComplaintError``."""
    if set(names) != {"mechanism", "user"}:
        raise ComplaintError("INVALID_REQUEST", "name the user and the mechanism, and nothing else")
    if not names["user"]:
        raise ComplaintError("UNACCEPTABLE_CREDENTIAL", "the name of the user is empty")
    if names["mechanism"] not in _KEY_BYTES:
        raise ComplaintError("UNSUPPORTED_SASL_MECHANISM", "there is no such SCRAM mechanism")


def checked_scram_value(key: str, value: str, names: Mapping[str, str | None]) -> str:
    """Return one part of a credential as it is kept. Raises ``ComplaintError``."""
    if key == "iterations":
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= _ITERATIONS_DIGITS_MAX):
            raise ComplaintError("UNACCEPTABLE_CREDENTIAL", "iterations is not a number")
        if int(value) < _ITERATIONS_MIN:
            raise ComplaintError("UNACCEPTABLE_CREDENTIAL", f"iterations: at least {_ITERATIONS_MIN} are expected")
        if int(value) > _ITERATIONS_MAX:
            raise ComplaintError("UNACCEPTABLE_CREDENTIAL", f"iterations: at most {_ITERATIONS_MAX} are allowed")
        return str(int(value))
    if key not in _BYTES:
        raise ComplaintError("INVALID_REQUEST", f"a SCRAM credential consists of {', '.join(sorted(_ALL))}")
    try:
        size = len(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        raise ComplaintError("UNACCEPTABLE_CREDENTIAL", f"{key} is not base64") from None
    expected = _KEY_BYTES[str(names["mechanism"])]
    if size > _SALT_BYTES_MAX if key == "salt" else size != expected:
        raise ComplaintError("UNACCEPTABLE_CREDENTIAL", f"{key} has {size} bytes")
    return value


def check_scram(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check a credential as a whole: all of it, or nothing. Raises ``ComplaintError``."""
    if not before and not after:
        raise ComplaintError("RESOURCE_NOT_FOUND", "there is no such credential")
    if after and set(after) != _ALL:
        raise ComplaintError("INVALID_REQUEST", f"a SCRAM credential consists of {', '.join(sorted(_ALL))}")
