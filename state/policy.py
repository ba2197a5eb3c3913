"""The settings that rules read, under Kafka's names."""

import difflib
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from state.setting_text import plainly_written, switch, trimmed, whole_number

Millis = Annotated[int, Meta(ge=1, le=2**53)]
Grace = Annotated[int, Meta(ge=-1, le=2**53)]
# 0 means never.
Interval = Annotated[int, Meta(ge=0, le=2**53)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Percentage = Annotated[int, Meta(ge=0, le=100)]
# Off or on.
FeatureLevel = Annotated[int, Meta(ge=0, le=1)]


class UncleanRecovery(StrEnum):
    """What becomes of a partition of which no replica is in sync or eligible (KIP-966)."""

    # As unclean.leader.election.enable says, and the last known leader whatever it says.
    Unset = ""
    # An operator decides.
    NoElection = "None"
    # Of all crashed members, the one with the most complete log leads.
    Balanced = "Balanced"
    # The first log that is there leads.
    Aggressive = "Aggressive"


class Policy(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda n: n.replace("_", ".")
):
    """The settings that rules read. A field's outward name is Kafka's, with dots for underscores."""

    broker_session_timeout_ms: Millis = 9_000
    broker_heartbeat_interval_ms: Millis = 2_000
    unclean_leader_election_enable: bool = False
    min_insync_replicas: Count = 1
    replica_lag_time_max_ms: Millis = 30_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_per_broker_percentage: Percentage = 10
    leader_imbalance_check_interval_seconds: Count = 300
    default_replication_factor: Count = 1
    num_partitions: Count = 1
    delete_topic_enable: bool = True
    controlled_shutdown_enable: bool = True
    broker_connection_lost_grace_ms: Grace = -1
    controller_quorum_fetch_timeout_ms: Millis = 2_000
    event_time_ahead_max_ms: Millis = 60_000
    metadata_max_idle_interval_ms: Interval = 5_000
    eligible_leader_replicas_version: FeatureLevel = 0
    unclean_recovery_strategy: UncleanRecovery = UncleanRecovery.Unset
    unclean_recovery_timeout_ms: Millis = 300_000

    def overlaid(self, config: dict[str, str]) -> "Policy":
        """Return this policy with the dynamic ``config`` (Kafka's names, text values) laid over it.

        Keys that no rule reads are for brokers, and are ignored.
        """
        known = {key: value for key, value in config.items() if key in NAMES}
        return policy_of(msgspec.to_builtins(self) | known) if known else self


# The strategies that compare logs.
COMPARING = frozenset({UncleanRecovery.Balanced, UncleanRecovery.Aggressive})
RECOVERY_STRATEGY, RECOVERY_TIMEOUT = "unclean.recovery.strategy", "unclean.recovery.timeout.ms"
# Brokers act on the first two themselves.
BROKER_NAMES = ("min.insync.replicas", "unclean.leader.election.enable")
TOPIC_NAMES = (*BROKER_NAMES, RECOVERY_STRATEGY)
NAMES = frozenset(field.encode_name for field in msgspec.structs.fields(Policy))
_SWITCHES = frozenset(field.encode_name for field in msgspec.structs.fields(Policy) if field.type is bool)
_CHOICES = {RECOVERY_STRATEGY: [str(one) for one in UncleanRecovery]}
# By name: the least and the greatest value of a number.
_LIMITS = {
    field.encode_name: (field.type.__metadata__[0].ge, field.type.__metadata__[0].le)
    for field in msgspec.structs.fields(Policy)
    if field.encode_name not in _SWITCHES and field.encode_name not in _CHOICES
}
# To difflib, controller.quorum.election.timeout.ms, which is Kafka's, is 0.87 like controller.quorum.fetch.timeout.ms.
_ALMOST = 0.92
# No known name is near a longer one.
_NAME_CHARS_MAX = 100


def policy_of(settings: dict[str, Any]) -> Policy:
    """Make a policy from Kafka's names. Numbers and booleans may be text.

    Raises ``msgspec.ValidationError`` that names the key, for an unknown key or a value out of range.
    """
    return msgspec.convert(settings, Policy, strict=False)


def laid_over(policy: Policy, config: Mapping[str, str]) -> Policy:
    """Return ``policy`` with ``config`` laid over it. Values are read as Kafka does, and impossible ones ignored."""
    if not config:
        return policy
    try:
        return policy.overlaid(dict(config))
    except msgspec.ValidationError:
        for key, value in config.items():
            if complaint_about(key, value) is None:
                policy = policy.overlaid({key: plainly_written(value)})
        return policy


def for_topic(policy: Policy, config: Mapping[str, str]) -> Policy:
    """Return the settings in force for a topic: its own ``config``, as far as rules read it, over the cluster's."""
    return laid_over(policy, {name: config[name] for name in TOPIC_NAMES if name in config})


def complaint_about(key: str, value: str) -> str | None:
    """Return what is wrong with ``value`` as the setting ``key``; None if it is right, or if no rule reads it.

    It is read as Kafka reads it (``ConfigDef.parseType``).
    """
    if key in _SWITCHES:
        return None if switch(value) is not None else f"{key} is {value!r:.40}: expected true or false"
    if key in _CHOICES:
        named = [one for one in _CHOICES[key] if one]
        is_known = trimmed(value) in _CHOICES[key]
        return None if is_known else f"{key} is {value!r:.40}: expected one of {', '.join(named)}"
    if key not in _LIMITS:
        return None
    low, high = _LIMITS[key]
    number = whole_number(value)
    if number is not None and low <= number <= high:
        return None
    return f"{key} is {value!r:.40}: expected a whole number from {low} to {high}"


def misspelt(key: str, names: Collection[str]) -> str | None:
    """Return the one of ``names`` that ``key`` almost is. Kafka's other settings are further away."""
    if key in names or len(key) > _NAME_CHARS_MAX:
        return None
    near = difflib.get_close_matches(key, sorted(names), n=1, cutoff=_ALMOST)
    return near[0] if near else None
