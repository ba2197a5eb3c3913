"""Tell brokers behind gateways which values are in force for the settings that they act on themselves.

A leader itself refuses writes below min.insync.replicas. An engine states the settings of its own file in its claim,
and brokers do not hear of claims. So these settings are told in a decision when they change, and once to brokers that
were never told.
"""

import msgspec

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_told_settings
from state.metadata_format import IN_FORCE_FORMAT
from state.policy import TOPIC_NAMES, Policy
from state.rules import TOLD_RULES


def in_force(policy: Policy) -> dict[str, str]:
    """Return the settings that brokers act on, as text. They are the ones that a topic may override."""
    values = msgspec.to_builtins(policy)
    return {name: str(values[name]).lower() for name in sorted(TOPIC_NAMES)}


def _can_be_told(batch: Batch) -> bool:
    return batch.state.rules_version >= TOLD_RULES and batch.state.quorum.metadata_format >= IN_FORCE_FORMAT


def tell_cluster_settings(batch: Batch) -> None:
    """Tell the cluster's dynamic settings, and what is in force if all gateways can write that."""
    told = in_force(batch.state.policy) if _can_be_told(batch) else {}
    commit_told_settings(batch, told)


def tell_changed_settings(batch: Batch) -> None:
    """Tell the cluster's settings if brokers were last told others than those in force."""
    if _can_be_told(batch) and batch.state.in_force != in_force(batch.state.policy):
        tell_cluster_settings(batch)
