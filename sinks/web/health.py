"""Whether the engine works, for /healthz, /readyz and /standbyz.

    /healthz   Is the process worth keeping? If it should decide and has not done so for a long time, restart it.
    /readyz    Does it decide now, promptly, and with a clock that can be trusted?
    /standbyz  Does it decide, or would it at once if the one that decides went away?

A standby is healthy and not ready.
"""

from typing import Any

import msgspec

from conf.phases import told
from sinks.metric_snapshot import MetricSnapshot

# Ticks come every 5 s at least.
COMMIT_AGE_MS_MAX = 10_000
# The largest batch and a cold start take minutes on a slow machine, and a restart would begin them again.
STUCK_AFTER_MS = 300_000
# Sessions last seconds, so a clock that is wrong by more than this fences brokers that are alive.
CLOCK_OFF_MS_MAX = 10_000


class Health(msgspec.Struct, frozen=True):
    """The answer, and the measured values that led to it."""

    ok: bool
    # The reasons why it is not ok; empty if it is.
    why: tuple[str, ...]
    role: str
    controller_epoch: int
    decided_seq: int
    # None before the first commit.
    last_commit_age_ms: int | None
    # How far the engine's clock is ahead of its machine's clock, and of the bus's; None if not known.
    clock_off_ms: int | None
    bus_clock_off_ms: int | None

    @property
    def body(self) -> bytes:
        """The answer as JSON."""
        return msgspec.json.encode(self) + b"\n"


def role_of(snapshot: MetricSnapshot) -> str:
    """Return what the engine is doing: ``deciding``, ``standby``, ``observing``, ``starting`` or ``stopping``."""
    if snapshot.observing:
        return "observing"
    if snapshot.active:
        return "deciding"
    if snapshot.standby:
        return "standby"
    return "stopping" if snapshot.takeovers else "starting"


def liveness(snapshot: MetricSnapshot, steady_ms: int) -> Health:
    """Return whether the process is worth keeping, at ``steady_ms`` of the steady clock."""
    why = []
    # A restart cannot end another program's transaction.
    began_ms = max(snapshot.took_over_steady_ms, snapshot.last_blocked_steady_ms)
    silent_ms = steady_ms - max(snapshot.last_commit_steady_ms or 0, began_ms)
    if snapshot.active and silent_ms > STUCK_AFTER_MS:
        why.append(f"it should decide, and has not committed for {silent_ms // 1000} s")
    why += _not_looked(snapshot, steady_ms, STUCK_AFTER_MS)
    return _health(snapshot, steady_ms, why)


def _not_looked(snapshot: MetricSnapshot, steady_ms: int, for_ms: int) -> list[str]:
    """Return a complaint if a standby has not looked for ``for_ms``: its JVM or its bus does not answer."""
    if not snapshot.standby or snapshot.looked_steady_ms is None:
        return []
    silent_ms = steady_ms - snapshot.looked_steady_ms
    told = f"it stands by, and has not looked whether it is its turn for {silent_ms // 1000} s"
    return [told] if silent_ms > for_ms else []


def _not_committed(snapshot: MetricSnapshot, steady_ms: int) -> list[str]:
    """Return a complaint if an engine that should decide does not."""
    if snapshot.last_commit_steady_ms is None:
        return ["it has not committed anything yet"]
    silent_ms = steady_ms - snapshot.last_commit_steady_ms
    return [f"its last commit is {silent_ms // 1000} s ago"] if silent_ms > COMMIT_AGE_MS_MAX else []


def readiness(snapshot: MetricSnapshot, steady_ms: int) -> Health:
    """Return whether the engine decides now, at ``steady_ms`` of the steady clock."""
    why = []
    if not snapshot.active:
        why.append(f"it does not decide: {role_of(snapshot)}")
    else:
        why += _not_committed(snapshot, steady_ms)
        if snapshot.blocker:
            why.append(f"for {snapshot.blocked_ms // 1000} s events could not be decided because of {snapshot.blocker}")
    for off_ms, whose in ((snapshot.clock_off_ms, "its machine's"), (snapshot.bus_clock_off_ms, "the bus's")):
        if snapshot.active and off_ms is not None and abs(off_ms) > CLOCK_OFF_MS_MAX:
            direction = "ahead of" if off_ms > 0 else "behind"
            why.append(f"the engine's clock is {abs(off_ms) // 1000} s {direction} {whose}")
    return _health(snapshot, steady_ms, why)


def availability(snapshot: MetricSnapshot, steady_ms: int) -> Health:
    """Return whether the engine decides, or has loaded everything and waits for its turn."""
    why = _not_looked(snapshot, steady_ms, COMMIT_AGE_MS_MAX)
    if snapshot.active:
        why += _not_committed(snapshot, steady_ms)
    elif not (snapshot.standby and snapshot.loaded):
        why.append(f"it neither decides nor has loaded everything: {role_of(snapshot)}")
    return _health(snapshot, steady_ms, why)


def _health(snapshot: MetricSnapshot, steady_ms: int, why: list[str]) -> Health:
    committed_ms = snapshot.last_commit_steady_ms
    if why and snapshot.phase:
        why = [*why, told(snapshot.phase, (steady_ms - snapshot.phase_steady_ms) / 1000)]
    values: dict[str, Any] = {
        "last_commit_age_ms": None if committed_ms is None else max(0, steady_ms - committed_ms),
        "clock_off_ms": snapshot.clock_off_ms,
        "bus_clock_off_ms": snapshot.bus_clock_off_ms,
    }
    return Health(not why, tuple(why), role_of(snapshot), snapshot.controller_epoch, snapshot.decided_seq, **values)
