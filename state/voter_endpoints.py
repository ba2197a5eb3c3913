"""The endpoints of a voter of the metadata quorum, as text: ``CONTROLLER://host:9093,CONTROLLER_SSL://host:9093``."""

import re
from collections.abc import Iterable
from typing import NamedTuple

ENDPOINTS_MAX = 8
_ENDPOINT = re.compile(r"([A-Za-z0-9_.-]{1,255})://(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,255}):([0-9]{1,5})")
_PORT_MAX = 65_535


class VoterEndpoint(NamedTuple):
    """An address, with the name of the listener that brokers use for it (``controller.listener.names``)."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.listener}://{address_of(self.host, self.port)}"


def address_of(host: str, port: int) -> str:
    """Write ``HOST:PORT``, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def text_of(endpoints: Iterable[VoterEndpoint]) -> str:
    """Write endpoints in the form that ``endpoints_of`` reads."""
    return ",".join(map(str, endpoints))


def endpoints_of(text: str) -> tuple[VoterEndpoint, ...]:
    """Read endpoints, at least one. Raises ``ValueError``, which says what was expected."""
    parts = text.split(",", ENDPOINTS_MAX)
    if len(parts) > ENDPOINTS_MAX:
        raise ValueError(f"at most {ENDPOINTS_MAX} endpoints are allowed")
    endpoints = tuple(map(_endpoint, parts))
    if len({one.listener for one in endpoints}) < len(endpoints):
        raise ValueError(f"{text!r} names a listener twice")
    return endpoints


def _endpoint(text: str) -> VoterEndpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None or not 0 < int(match[3]) <= _PORT_MAX:
        raise ValueError(f"{text!r} is not an endpoint: expected LISTENER://HOST:PORT")
    return VoterEndpoint(match[1], match[2].strip("[]"), int(match[3]))
