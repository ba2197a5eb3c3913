"""Checks of client quotas: the entities they are for, and their keys (KIP-546; ``QuotaConfig`` of Kafka 4.1)."""

import math
from collections.abc import Mapping
from ipaddress import ip_address

from state.entity import ComplaintError

_PARTS = ("user", "client-id", "ip")
# As floats, because Kafka compares quotas as such.
_INT_MAX, _LONG_MAX = float(2**31 - 1), float(2**63 - 1)
# By key: the greatest whole number that is allowed; None if any number is.
_OF_CLIENTS: dict[str, float | None] = {
    "consumer_byte_rate": _LONG_MAX,
    "controller_mutation_rate": None,
    "producer_byte_rate": _LONG_MAX,
    "request_percentage": None,
}
_OF_ADDRESSES: dict[str, float | None] = {"connection_creation_rate": _INT_MAX}
_WHOLE_TOLERANCE = 1e-6


def check_quota_names(names: Mapping[str, str | None]) -> None:
    """Check the entity that a quota is for. Raises ``ComplaintError``."""
    if not names:
        raise ComplaintError("INVALID_REQUEST", "a quota is of a user, a client-id or an ip, and none is named")
    for part, name in names.items():
        if part not in _PARTS:
            raise ComplaintError("INVALID_REQUEST", f"there are no quotas of a {part}: expected {', '.join(_PARTS)}")
        if name == "":
            raise ComplaintError("INVALID_REQUEST", f"the name of the {part} is empty")
    if "ip" in names:
        if len(names) > 1:
            raise ComplaintError("INVALID_REQUEST", "a quota of an IP address is of no user or client-id too")
        _check_address(names["ip"])


def _check_address(address: str | None) -> None:
    # Kafka also accepts a host's name, and looks it up. The rules are pure, so they cannot.
    try:
        if address is not None:
            ip_address(address)
    except ValueError:
        raise ComplaintError("INVALID_REQUEST", f"{address} is not an IP address") from None


def checked_quota(key: str, value: str, names: Mapping[str, str | None]) -> str:
    """Return one quota as it is kept. Raises ``ComplaintError``."""
    keys = _OF_ADDRESSES if "ip" in names else _OF_CLIENTS
    if key not in keys:
        raise ComplaintError("INVALID_REQUEST", f"there is no quota {key}: expected {', '.join(keys)}")
    try:
        number = float(value)
    except ValueError:
        raise ComplaintError("INVALID_REQUEST", f"{key}: {value!r} is not a number") from None
    if not math.isfinite(number) or number <= 0:
        raise ComplaintError("INVALID_REQUEST", f"{key}: a finite number above 0 is expected")
    greatest = keys[key]
    if greatest is not None:
        if number > greatest:
            raise ComplaintError("INVALID_REQUEST", f"{key}: at most {greatest:.0f} is allowed")
        if number % 1.0 > _WHOLE_TOLERANCE:
            raise ComplaintError("INVALID_REQUEST", f"{key}: a whole number is expected")
    return repr(number)
