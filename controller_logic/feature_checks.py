"""Checks of features' levels: which there are, and whether all brokers support them (``FeatureControlManager``)."""

from collections.abc import Iterable, Mapping

from state.broker import Broker
from state.entity import ComplaintError
from state.features import METADATA_VERSION, USUAL_METADATA_VERSION, Levels, not_supported, supported_at
from state.registration import Feature

_LEVEL_DIGITS_MAX = 5


def checked_level(feature: str, value: str, names: Mapping[str, str | None]) -> str:
    """Return a feature's level as it is kept. Raises ``ComplaintError`` if it is none."""
    if not (value.isascii() and value.isdecimal() and len(value) <= _LEVEL_DIGITS_MAX):
        raise _invalid(feature, value, "a level is a number from 0 on")
    return str(int(value))


def check_gateways(bus_level: int, changes: Iterable[str], after: Mapping[str, str]) -> None:
    """Check that gateways support the features that change, on a bus at a level. Raises ``ComplaintError``."""
    supported = supported_at(bus_level)
    for feature in changes:
        if feature in after:
            reason = not_supported("a gateway", supported.get(feature), int(after[feature]))
            if reason is not None:
                raise _invalid(feature, after[feature], reason)


def check_metadata_version(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check that a log that brokers have read gets no lower metadata version. Raises ``ComplaintError``."""
    held, wanted = before.get(METADATA_VERSION, str(USUAL_METADATA_VERSION)), after.get(METADATA_VERSION)
    if wanted is None and METADATA_VERSION in before:
        raise _invalid(METADATA_VERSION, "null", "a log always has one")
    if wanted is not None and int(wanted) < int(held):
        raise _invalid(METADATA_VERSION, wanted, f"it is at {held} now, and metadata could be lost at a lower level")


def check_brokers(brokers: Iterable[Broker], before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check that every broker supports the levels that change. Raises ``ComplaintError``."""
    changed = {feature: level for feature, level in after.items() if before.get(feature) != level}
    for broker in brokers:
        found = unsupported_level(broker.broker, broker.features, changed)
        if found is not None:
            raise _invalid(*found)


def unsupported_level(
    broker: int, features: Iterable[Feature], levels: Mapping[str, str]
) -> tuple[str, str, str] | None:
    """Return the first of ``levels`` that a broker with these ``features`` does not support, and why, if any."""
    supported = {one.name: Levels(one.min_version, one.max_version) for one in features}
    for feature, level in levels.items():
        # A level of 0 turns a feature off.
        reason = not_supported(f"broker {broker}", supported.get(feature, Levels(0, 0)), int(level))
        if reason is not None:
            return feature, level, reason
    return None


def _invalid(feature: str, level: str, why: str) -> ComplaintError:
    return ComplaintError("INVALID_UPDATE_VERSION", f"{feature} cannot have level {level}: {why}")
