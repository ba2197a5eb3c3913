"""Tell brokers behind gateways which of the cluster's settings are in force, as far as they act on them themselves.

A leader refuses writes below min.insync.replicas by itself. What an engine has in its own file it says with its claim,
of which brokers hear nothing: so it is said to them as a decision, when it becomes something else and once to those
who never heard of it.
"""

import msgspec

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_told_settings
from state.metadata_format import IN_FORCE_FORMAT
from state.policy import TOPIC_NAMES, Policy
from state.rules import TOLD_RULES


def in_force(policy: Policy) -> dict[str, str]:
    """Give the settings that brokers act on, as text; they are those that a topic may have of its own."""
    values = msgspec.to_builtins(policy)
    return {name: str(values[name]).lower() for name in sorted(TOPIC_NAMES)}


def _can_be_told(batch: Batch) -> bool:
    return batch.state.rules_version >= TOLD_RULES and batch.state.quorum.metadata_format >= IN_FORCE_FORMAT


def say_cluster(batch: Batch) -> None:
    """Say the cluster's dynamic settings, and to gateways that can write it what is in force."""
    told = in_force(batch.state.policy) if _can_be_told(batch) else {}
    commit_told_settings(batch, told)


def say_what_changed(batch: Batch) -> None:
    """Say the cluster's settings where brokers have others than are in force."""
    if _can_be_told(batch) and batch.state.in_force != in_force(batch.state.policy):
        say_cluster(batch)
