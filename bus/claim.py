"""The event with which a job takes over, as every bus writes it."""

from collections.abc import Mapping

import msgspec

from state.rules import NEWEST_RULES


def controller_started(
    controller_id: str, controller_epoch: int, settings: Mapping[str, str], time_ms: int, decided_seq: int
) -> bytes:
    """Write ``controller_started`` for a job that decides by ``settings`` and by the newest rules from here on.

    Jobs before it decided up to ``decided_seq``.
    """
    return msgspec.json.encode(
        {
            "kind": "controller_started",
            "time_ms": time_ms,
            "controller_id": controller_id,
            "controller_epoch": controller_epoch,
            "settings": settings,
            "rules_version": NEWEST_RULES,
            "decided_seq": decided_seq,
        }
    )
