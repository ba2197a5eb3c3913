"""Checks across settings: which of them must fit each other."""

from collections.abc import Collection

import msgspec

from conf.settings import Settings

# A gateway's default heartbeat interval.
GATEWAY_HEARTBEAT_MS = 400
_SESSION = "broker.session.timeout.ms"
_HEARTBEAT = "broker.heartbeat.interval.ms"
_TICK = "tick.idle.interval.ms"
_QUORUM = "controller.quorum.fetch.timeout.ms"


def complaint_about(settings: Settings, named: Collection[str]) -> str | None:
    """Say which settings cannot work together, and what was expected. Return None if all can.

    ``named`` are the keys that were set. Brokers have their own settings, so the heartbeat interval is compared with
    the session only if it was set.
    """
    values: dict[str, int] = msgspec.to_builtins(settings) | msgspec.to_builtins(settings.policy)

    def are(lesser: str, how: str, greater: str) -> str:
        return f"{lesser} is {values[lesser]}, and {greater} is {values[greater]}: expected the first to be {how}"

    if values["watermark.interval.ms"] > values[_TICK]:
        return are("watermark.interval.ms", "no more than the second", _TICK)
    if values[_TICK] >= values[_SESSION]:
        return are(_TICK, "less than the second, for sessions end at ticks", _SESSION)
    if _HEARTBEAT in named and values[_HEARTBEAT] >= values[_SESSION]:
        return are(_HEARTBEAT, "less than the second, or every session ends between two heartbeats", _SESSION)
    if values[_QUORUM] <= GATEWAY_HEARTBEAT_MS:
        heard = f"a gateway is heard every {GATEWAY_HEARTBEAT_MS} ms"
        return f"{_QUORUM} is {values[_QUORUM]}: expected more than {GATEWAY_HEARTBEAT_MS}, for {heard}"
    return None
