"""Whether a gateway works, for /healthz and /readyz.

/healthz   Is the process worth keeping? If its event loop has stood still for a long time, restart it.
/readyz    Does it serve brokers, and either lead them or follow the gateway that does?
"""

import msgspec

from brokers.gateways.shared.metrics import GatewayMeasures
from state.ids import NO_LEADER

# As for an engine. A large log takes minutes to open on a slow disk, and a restart would begin again.
STUCK_AFTER_MS = 300_000


class GatewayHealth(msgspec.Struct, frozen=True):
    """The answer, and the measured values that led to it."""

    ok: bool
    # The reasons why it is not ok; empty if it is.
    why: tuple[str, ...]
    # ``starting``, ``waiting`` for a leader, ``leading`` or ``following``.
    role: str
    gateway: int
    leader: int
    quorum_epoch: int
    decided_seq: int

    @property
    def body(self) -> bytes:
        """The answer as JSON."""
        return msgspec.json.encode(self) + b"\n"


def role_of(measures: GatewayMeasures) -> str:
    """Return what the gateway is doing."""
    if not measures.is_serving:
        return "starting"
    if measures.leads:
        return "leading"
    # A former start of this gateway may still be named.
    return "waiting" if measures.leader in (NO_LEADER, measures.gateway) else "following"


def liveness(measures: GatewayMeasures, silent_ms: int) -> GatewayHealth:
    """Return whether the process is worth keeping. Its event loop last ran ``silent_ms`` ago."""
    is_stuck = silent_ms > STUCK_AFTER_MS
    return _health(measures, [f"its event loop has stood still for {silent_ms // 1000} s"] if is_stuck else [])


def readiness(measures: GatewayMeasures) -> GatewayHealth:
    """Return whether the gateway leads or follows, and hears what is decided."""
    role = role_of(measures)
    why = [] if role in ("leading", "following") else [f"it neither leads nor follows: {role}"]
    if measures.is_cut_off:
        why.append("the bus accepts nothing from it")
    if measures.is_blind:
        why.append("it cannot read decisions, or cannot put them on disk")
    return _health(measures, why)


def _health(measures: GatewayMeasures, why: list[str]) -> GatewayHealth:
    if why and measures.phase:
        why = [*why, measures.phase]
    place = (measures.gateway, measures.leader, measures.quorum_epoch, measures.decided_seq)
    return GatewayHealth(not why, tuple(why), role_of(measures), *place)
