"""What every decision has."""

import msgspec
from msgspec import UNSET, UnsetType

from state.reason import Reason

CONTRACT_VERSION = 1


class Decision(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What every decision has. (``seq``, ``index``) is its identity."""

    contract_version: int = CONTRACT_VERSION
    # The event that caused it.
    seq: int
    # Its place among that event's decisions; ``canonical.number`` sets it.
    index: int = 0
    controller_epoch: int
    time_ms: int
    reason: Reason
    # Of the admin whose request caused it, if the request says so.
    principal: str | UnsetType = UNSET
