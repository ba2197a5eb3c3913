"""Checks of metadata entities, by type: their names and their values.

The errors are those of Kafka's controller (``ClientQuotaControlManager``, ``ControllerConfigurationValidator``,
``ScramControlManager``).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from controller_logic.feature_checks import checked_level
from controller_logic.quota_checks import check_quota_names, checked_quota
from controller_logic.scram_checks import check_scram, check_scram_names, checked_scram_value
from controller_logic.token_checks import check_token, check_token_names, checked_token_value
from controller_logic.voter_checks import check_voters, checked_voter
from state.entity import FEATURES, VOTERS, ComplaintError, EntityType
from state.group_settings import complaint_about_group
from state.topic_settings import VALUE_BYTES_MAX

Names = Mapping[str, str | None]
GROUP: EntityType = "group"
_CLIENT_METRICS: EntityType = "client_metrics"
_INTERVAL_MS_MIN, _INTERVAL_MS_MAX = 100, 3_600_000
_PATTERN_CHARS_MAX = 1_000
# Python compiles nested groups recursively. With more of them, the answer would depend on how deep the caller is.
_GROUPS_MAX = 50
_MATCHED = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
# Syntax that Python's regular expressions have and Java's lack.
_NOT_JAVA = re.compile(r"\(\?P|\(\?\(|\\Z")
_INT = re.compile(r"[+-]?[0-9]{1,10}")


class _Type(NamedTuple):
    """The checks of one type. Each raises ``ComplaintError``."""

    # Checks the name.
    names: Callable[[Names], None]
    # Checks one value that is set, and returns it as it is kept.
    value: Callable[[str, str, Names], str]
    # Checks all values, before and after the change.
    whole: Callable[[Mapping[str, str], Mapping[str, str]], None]


def checked(
    entity_type: EntityType, names: Names, before: Mapping[str, str], changes: Mapping[str, str | None]
) -> dict[str, str]:
    """Return an entity's values after ``changes``. Raises ``ComplaintError``.

    A value may be removed whatever it is called.
    """
    of = _TYPES[entity_type]
    of.names(names)
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        elif len(value.encode()) > VALUE_BYTES_MAX:
            raise ComplaintError("INVALID_CONFIG", f"{key} has more than {VALUE_BYTES_MAX} bytes")
        else:
            after[key] = of.value(key, value, names)
    of.whole(before, after)
    return dict(sorted(after.items()))


def _check_unnamed(what: str, names: Names) -> None:
    """Check that nothing is named, because a cluster has this entity once."""
    if names:
        raise ComplaintError("INVALID_REQUEST", f"{what} are of the cluster: names is empty")


def _check_group_name(names: Names) -> None:
    if set(names) != {"group"}:
        raise ComplaintError("INVALID_REQUEST", "name the group, and nothing else")
    if not names["group"]:
        raise ComplaintError("INVALID_REQUEST", "settings of all groups are not allowed: name a group")


def check_group_settings(after: Mapping[str, str], metadata_version: int) -> None:
    """Check the settings of a group for brokers of a metadata version. Raises ``ComplaintError``."""
    complaint = complaint_about_group(after, metadata_version)
    if complaint is not None:
        raise ComplaintError("INVALID_CONFIG", complaint)


def _check_subscription_name(names: Names) -> None:
    if set(names) != {"client-metrics"}:
        raise ComplaintError("INVALID_REQUEST", "name the subscription, and nothing else")
    if not names["client-metrics"]:
        raise ComplaintError("INVALID_REQUEST", "the name of a subscription cannot be empty")


def _as_given(key: str, value: str, names: Names) -> str:
    return value


def _anything(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    return None


def _subscribed(key: str, value: str, names: Names) -> str:
    """Check one setting of a subscription to clients' metrics (``ClientMetricsConfigs``)."""
    if key == "interval.ms":
        if _INT.fullmatch(value.strip()) is None:
            raise ComplaintError("INVALID_CONFIG", f"interval.ms: {value!r} is not an integer")
        if not _INTERVAL_MS_MIN <= int(value) <= _INTERVAL_MS_MAX:
            limits = f"between {_INTERVAL_MS_MIN} and {_INTERVAL_MS_MAX} (1 hour)"
            raise ComplaintError("INVALID_REQUEST", f"interval.ms: {value} is not {limits}")
    elif key == "match":
        for pattern in (one.strip() for one in value.split(",") if value.strip()):
            _check_pattern(pattern)
    elif key != "metrics":
        raise ComplaintError("INVALID_REQUEST", f"clients' metrics have no setting {key!r}")
    return value


def _check_pattern(pattern: str) -> None:
    name, _, expression = pattern.partition("=")
    is_readable = len(pattern) <= _PATTERN_CHARS_MAX and "=" not in expression and expression
    if expression.count("(") > _GROUPS_MAX:
        raise ComplaintError("INVALID_CONFIG", f"match: {pattern!r} has more than {_GROUPS_MAX} opening brackets")
    if name.strip() not in _MATCHED or not is_readable or _NOT_JAVA.search(expression) or not _compiles(expression):
        raise ComplaintError("INVALID_CONFIG", f"match: {pattern!r} is not a pattern of the form name=expression")


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression.strip())
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_TYPES: dict[EntityType, _Type] = {
    "client_quota": _Type(check_quota_names, checked_quota, _anything),
    GROUP: _Type(_check_group_name, _as_given, _anything),
    _CLIENT_METRICS: _Type(_check_subscription_name, _subscribed, _anything),
    FEATURES: _Type(partial(_check_unnamed, FEATURES), checked_level, _anything),
    "scram_credential": _Type(check_scram_names, checked_scram_value, check_scram),
    "delegation_token": _Type(check_token_names, checked_token_value, check_token),
    VOTERS: _Type(partial(_check_unnamed, VOTERS), checked_voter, check_voters),
}
