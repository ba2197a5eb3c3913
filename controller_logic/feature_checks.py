"""Checks of features' levels: which there are, and whether all brokers support them (``FeatureControlManager``)."""

from collections.abc import Iterable, Mapping

from state.broker import Broker
from state.entity_complaint import ComplaintError
from state.features import SUPPORTED, Levels, not_supported

_LEVEL_DIGITS_MAX = 5


def check_feature_names(names: Mapping[str, str | None]) -> None:
    """Check that nothing is named, because a cluster has its features once. Raises ``ComplaintError``."""
    if names:
        raise ComplaintError("INVALID_REQUEST", "features are of the cluster: names is empty")


def checked_level(feature: str, value: str, names: Mapping[str, str | None]) -> str:
    """Return a feature's level as it is kept. Raises ``ComplaintError``."""
    if not (value.isascii() and value.isdecimal() and len(value) <= _LEVEL_DIGITS_MAX):
        raise _invalid(feature, value, "a level is a number from 0 on")
    reason = not_supported("a gateway", SUPPORTED.get(feature), int(value))
    if reason is not None:
        raise _invalid(feature, value, reason)
    return str(int(value))


def check_brokers(brokers: Iterable[Broker], before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check that every broker supports the levels that change. Raises ``ComplaintError``."""
    changed = {feature: level for feature, level in after.items() if before.get(feature) != level}
    for broker in brokers:
        supported = {one.name: Levels(one.min_version, one.max_version) for one in broker.features}
        for feature, level in changed.items():
            # A level of 0 turns a feature off.
            reason = not_supported(f"broker {broker.broker}", supported.get(feature, Levels(0, 0)), int(level))
            if reason is not None:
                raise _invalid(feature, level, reason)


def _invalid(feature: str, level: str, why: str) -> ComplaintError:
    return ComplaintError("INVALID_UPDATE_VERSION", f"{feature} cannot have level {level}: {why}")
