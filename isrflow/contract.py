"""The part of the contract that every program on a bus needs (``docs/contract.md``)."""

from typing import NamedTuple

MAX_EVENT_BYTES = 8 * 1024 * 1024
# The most that one call for decisions returns, so that a reader's memory has a bound.
DECISIONS_BYTES_MAX = 32 * 1024 * 1024
# An index after all decisions on an event.
AFTER_ALL_OF = 2**31
# Only the engine makes these events. ``state.events`` has their types.
ENGINE_KINDS = frozenset({"controller_started", "leader_imbalance", "sessions_extended", "tick"})
LOG_END_OFFSET = "log_end_offset"
# Both report where logs end: of one replica, and of many.
LOG_END_REPORTS = (LOG_END_OFFSET, "log_end_offsets")
HEARTBEATS = ("broker_heartbeat", "gateway_heartbeat")
SQLITE = "sqlite:"
# The place of a decision: its seq and index.
Place = tuple[int, int]


class Decided(NamedTuple):
    """One decision as written: its identity and its JSON text."""

    seq: int
    idx: int
    body: bytes
