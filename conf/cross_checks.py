"""Check the settings that must fit each other."""

from collections.abc import Collection

import msgspec

from conf.settings import Settings
from state.policy_fit import GATEWAY_HEARTBEAT_MS as GATEWAY_HEARTBEAT_MS
from state.policy_fit import TICK_INTERVAL, complaint_about_fit, expected

_STANDBY = "controller.standby.timeout.ms"


def complaint_about(settings: Settings, named: Collection[str]) -> str | None:
    """Return which settings cannot work together, and what was expected; None if all can.

    ``named`` are the keys that were set. The standby's time-out is compared only if it was set, because most engines
    are not standbys.
    """
    values: dict[str, int] = msgspec.to_builtins(settings) | msgspec.to_builtins(settings.policy)
    if values["watermark.interval.ms"] > values[TICK_INTERVAL]:
        return expected(values, "watermark.interval.ms", "≤", TICK_INTERVAL)
    if _STANDBY in named and values[TICK_INTERVAL] >= values[_STANDBY]:
        return expected(values, TICK_INTERVAL, "<", _STANDBY, "a standby hears of the engine at ticks")
    return complaint_about_fit(values, named)
