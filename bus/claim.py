"""What every bus does at a claim: count epochs, and write the event with which a job takes over."""

import secrets
from collections.abc import Mapping

import msgspec

from bus.interface import BusError, OvertakenError
from state.level import NEWEST_LEVEL

EPOCH_MAX = 2**31 - 1


def controller_started(
    controller_id: str, controller_epoch: int, settings: Mapping[str, str], time_ms: int, decided_seq: int
) -> bytes:
    """Write ``controller_started`` for a job that decides by ``settings`` from here on.

    Earlier jobs decided up to ``decided_seq``.
    """
    return msgspec.json.encode(
        {
            "kind": "controller_started",
            "time_ms": time_ms,
            "controller_id": controller_id,
            "controller_epoch": controller_epoch,
            "settings": settings,
            "decided_seq": decided_seq,
            "level": NEWEST_LEVEL,
        }
    )


def epoch_after(claimed: int, bus: object) -> int:
    """Return the controller epoch after ``claimed``. Raises ``BusError`` if Kafka's 32 bits are used up."""
    if claimed >= EPOCH_MAX:
        raise BusError(f"bus {bus}: controller epoch {claimed} is the last possible one: start a new bus")
    return claimed + 1


def check_not_overtaken(claimed: int, after_epoch: int | None, bus: object) -> None:
    """Raise ``OvertakenError`` if ``after_epoch`` is given and another job has claimed since."""
    if after_epoch is not None and claimed != after_epoch:
        raise OvertakenError(f"bus {bus}: another job claimed controller epoch {claimed} first")


def draw_bus_id() -> int:
    """Draw the number that identifies a new bus."""
    return secrets.randbelow(2**62) + 1
