"""The settings of the policy that must fit each other, and the engine's tick interval, which must fit them."""

from collections.abc import Collection, Mapping

# A gateway's default heartbeat interval.
GATEWAY_HEARTBEAT_MS = 400
# The one setting of the engine that a claim carries beside the policy.
TICK_INTERVAL = "tick.idle.interval.ms"
_SESSION = "broker.session.timeout.ms"
_HEARTBEAT = "broker.heartbeat.interval.ms"
_QUORUM = "controller.quorum.fetch.timeout.ms"
FITTED = frozenset({_SESSION, _HEARTBEAT, _QUORUM})


def complaint_about_fit(values: Mapping[str, int], named: Collection[str]) -> str | None:
    """Return which ``values`` cannot work together, and what was expected; None if all can.

    Brokers have their own settings, so the heartbeat interval is compared with the session only if it is ``named``.
    Without an engine's claim there is no tick interval.
    """
    if TICK_INTERVAL in values and values[TICK_INTERVAL] >= values[_SESSION]:
        return expected(values, TICK_INTERVAL, "<", _SESSION, "sessions end at ticks")
    if _HEARTBEAT in named and values[_HEARTBEAT] >= values[_SESSION]:
        return expected(values, _HEARTBEAT, "<", _SESSION, "otherwise every session ends between two heartbeats")
    if values[_QUORUM] <= GATEWAY_HEARTBEAT_MS:
        because = f"a gateway sends a heartbeat every {GATEWAY_HEARTBEAT_MS} ms"
        return f"{_QUORUM} is {values[_QUORUM]}: expected more than {GATEWAY_HEARTBEAT_MS}, because {because}"
    if TICK_INTERVAL in values and values[TICK_INTERVAL] >= values[_QUORUM]:
        return expected(values, TICK_INTERVAL, "<", _QUORUM, "a gateway's silence ends at a tick")
    return None


def expected(values: Mapping[str, int], lesser: str, relation: str, greater: str, because: str = "") -> str:
    """Describe two settings, and which relation between them was expected."""
    wanted = f"expected {lesser} {relation} {greater}{because and f', because {because}'}"
    return f"{lesser} is {values[lesser]}, and {greater} is {values[greater]}: {wanted}"
