"""Announce to brokers behind gateways the values in force of the settings that brokers themselves act on.

For example, a leader itself refuses writes below min.insync.replicas. An engine states the settings of its own file in
its claim, and brokers do not hear of claims. So a decision announces these settings when they change, and once if they
were never announced.
"""

from collections.abc import Collection, Mapping

import msgspec

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_announced_settings
from state.features import ELIGIBLE_VERSION
from state.policy import BROKER_NAMES, Policy


def in_force(policy: Policy, told: Collection[str] = ()) -> dict[str, str]:
    """Return the settings that brokers act on, as text. A topic may override each of them but the feature's level.

    The level of eligible leader replicas is announced once they are on, and from then on: ``told`` are the settings of
    the last announcement.
    """
    has_level = policy.eligible_leader_replicas_version > 0 or ELIGIBLE_VERSION in told
    names = (*BROKER_NAMES, ELIGIBLE_VERSION) if has_level else BROKER_NAMES
    values = msgspec.to_builtins(policy)
    return {name: str(values[name]).lower() for name in sorted(names)}


def set_again(batch: Batch, before: Mapping[str, str], config: Mapping[str, str | None]) -> tuple[str, ...]:
    """List the settings that an event sets to the value that they have, if there is a metadata log to tell brokers.

    A broker reads a keystore again when it is told of its path, whether or not the path has changed (KAFKA-14136).
    """
    if not batch.state.quorum.is_kraft:
        return ()
    return tuple(sorted(name for name, value in config.items() if value is not None and before.get(name) == value))


def tell_cluster_settings(batch: Batch, again: tuple[str, ...] = ()) -> None:
    """Announce the cluster's dynamic settings, and those in force if there is a metadata log.

    ``again`` are those that were set to the value that they had.
    """
    announced = in_force(batch.state.policy, batch.state.in_force) if batch.state.quorum.is_kraft else {}
    commit_announced_settings(batch, announced, again)


def tell_changed_settings(batch: Batch) -> None:
    """Announce the cluster's settings if those in force differ from the last announcement."""
    if batch.state.quorum.is_kraft and batch.state.in_force != in_force(batch.state.policy, batch.state.in_force):
        tell_cluster_settings(batch)
