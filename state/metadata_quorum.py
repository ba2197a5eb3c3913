"""The gateways that pose as Kafka's metadata quorum, and which of them leads it."""

import msgspec

from state.ids import NO_LEADER
from state.metadata_format import FIRST_FORMAT


class Gateway(msgspec.Struct, frozen=True, array_like=True):
    """Hold one gateway in its newest start; ``last_contact_ms`` is on the engine's clock.

    One that ``is_stopping`` said so, and leads no more where another one can.
    ``metadata_format`` is the newest that it can write.
    """

    gateway: int
    incarnation: str
    voters: tuple[int, ...]
    last_contact_ms: int
    is_stopping: bool = False
    metadata_format: int = FIRST_FORMAT


class Quorum(msgspec.Struct, frozen=True, array_like=True):
    """Hold who leads; an epoch has one leader, in one start of it, and is never used again.

    ``heard_ms`` is when the one that leads was last heard, on the engine's clock; 0 is not known.
    ``metadata_format`` is the one that the metadata log is written in. ``no_op_ms`` is when the newest ``no_op`` was
    decided, or the epoch began.
    """

    voter: int = NO_LEADER
    incarnation: str = ""
    voters: tuple[int, ...] = ()
    quorum_epoch: int = 0
    heard_ms: int = 0
    metadata_format: int = FIRST_FORMAT
    no_op_ms: int = 0
