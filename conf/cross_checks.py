"""Check the settings that must fit each other."""

from collections.abc import Collection

import msgspec

from conf.settings import Settings

# A gateway's default heartbeat interval.
GATEWAY_HEARTBEAT_MS = 400
_SESSION = "broker.session.timeout.ms"
_HEARTBEAT = "broker.heartbeat.interval.ms"
_TICK = "tick.idle.interval.ms"
_STANDBY = "controller.standby.timeout.ms"
_QUORUM = "controller.quorum.fetch.timeout.ms"


def complaint_about(settings: Settings, named: Collection[str]) -> str | None:
    """Say which settings cannot work together, and what was expected. Return None if all can.

    ``named`` are the keys that were set. The heartbeat interval is compared with the session only if it was set,
    because brokers have their own settings. The standby's time-out is compared only if it was set, because most engines
    are not standbys.
    """
    values: dict[str, int] = msgspec.to_builtins(settings) | msgspec.to_builtins(settings.policy)

    def expected(lesser: str, relation: str, greater: str, because: str = "") -> str:
        wanted = f"expected {lesser} {relation} {greater}{because and f', because {because}'}"
        return f"{lesser} is {values[lesser]}, and {greater} is {values[greater]}: {wanted}"

    if values["watermark.interval.ms"] > values[_TICK]:
        return expected("watermark.interval.ms", "≤", _TICK)
    if values[_TICK] >= values[_SESSION]:
        return expected(_TICK, "<", _SESSION, "sessions end at ticks")
    if _STANDBY in named and values[_TICK] >= values[_STANDBY]:
        return expected(_TICK, "<", _STANDBY, "a standby hears of the engine at ticks")
    if _HEARTBEAT in named and values[_HEARTBEAT] >= values[_SESSION]:
        return expected(_HEARTBEAT, "<", _SESSION, "otherwise every session ends between two heartbeats")
    if values[_QUORUM] <= GATEWAY_HEARTBEAT_MS:
        because = f"a gateway sends a heartbeat every {GATEWAY_HEARTBEAT_MS} ms"
        return f"{_QUORUM} is {values[_QUORUM]}: expected more than {GATEWAY_HEARTBEAT_MS}, because {because}"
    return None
