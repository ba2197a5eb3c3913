"""The controllers that brokers talk to: Kafka's own, or gateways in their place."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from state.voter_endpoints import address_of

Port = Annotated[int, Meta(ge=1, le=65_535)]
NodeId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_VOTER = re.compile(r"([0-9]{1,10})@(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._:-]+):([0-9]{1,5})")


class Voter(msgspec.Struct, frozen=True, order=True):
    """One controller, as ``controller.quorum.voters`` names it."""

    voter: NodeId
    host: str
    port: Port

    def __str__(self) -> str:
        return f"{self.voter}@{address_of(self.host, self.port)}"


def voters_of(text: str) -> tuple[Voter, ...]:
    """Read ``100@host:port,101@host:port``, and return the voters in ascending order.

    Raises ``ValueError`` with a message that says what was expected.
    """
    voters = tuple(sorted(_voter(one.strip()) for one in text.split(",")))
    if len({voter.voter for voter in voters}) != len(voters):
        raise ValueError(f"{text!r} names a voter twice")
    return voters


def text_of(voters: tuple[Voter, ...]) -> str:
    """Write voters in the form of ``controller.quorum.voters``."""
    return ",".join(map(str, voters))


def _voter(text: str) -> Voter:
    match = _VOTER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a voter: expected ID@HOST:PORT")
    try:
        return msgspec.convert({"voter": int(match[1]), "host": match[2].strip("[]"), "port": int(match[3])}, Voter)
    except msgspec.ValidationError as error:
        raise ValueError(f"{text!r} is not a voter: {error}") from error
