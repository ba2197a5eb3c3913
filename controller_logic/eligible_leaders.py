"""Eligible leader replicas outside the changes that brokers cause (KIP-966): the switch, the settings, unproven logs.

``eligible.leader.replicas.version`` turns them on. It is a setting, so each shard knows it, and the cluster's dynamic
settings overrule that of a claim. Behind gateways it is also a feature, which gateways announce.

A change of min.insync.replicas is judged as any other change: no replica is eligible where the ISR is large enough now.
Kafka empties the eligible replicas of every partition then, also where there is no leader and they alone can lead.
"""

from collections.abc import Mapping

from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.commit_alike import Alike
from controller_logic.commit_reports import commit_min_isr_read
from controller_logic.feature_checks import unsupported_level
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.features import ELIGIBLE_LEVEL, ELIGIBLE_VERSION
from state.partition import Partition
from state.reason import Reason

_MIN_ISR = "min.insync.replicas"


def complaint_about(batch: Batch, settings: Mapping[str, str | None]) -> str | None:
    """Return why ``settings`` cannot turn eligible replicas on; None if they can, or do not."""
    value = settings.get(ELIGIBLE_VERSION)
    if value is None or not value.strip("0"):
        return None
    state = batch.state
    if state.level < ELIGIBLE_LEVEL:
        return f"{ELIGIBLE_VERSION} needs level {ELIGIBLE_LEVEL}, and the level is {state.level}: raise it first"
    if any(not gateway.is_kraft for gateway in state.gateways.values()):
        return f"{ELIGIBLE_VERSION} is not for brokers in ZooKeeper mode, and one of their gateways is registered"
    for name, config in state.broker_config.items():
        if _MIN_ISR in config:
            return f"{ELIGIBLE_VERSION} cannot be 1 while broker {name} has its own {_MIN_ISR}: remove that first"
    for broker in state.brokers.values():
        found = unsupported_level(broker.broker, broker.features, {ELIGIBLE_VERSION: "1"}) if broker.is_kraft else None
        if found is not None:
            return f"{ELIGIBLE_VERSION} cannot be 1: {found[2]}"
    return None


def complaint_about_broker(batch: Batch, config: Mapping[str, str | None]) -> str | None:
    """Return why a broker cannot have these settings; None if it can.

    Each leader must commit at the same size of the ISR, or the controller does not know who is eligible.
    """
    if batch.state.has_eligible_leaders and config.get(_MIN_ISR) is not None:
        return f"{_MIN_ISR} cannot be set for one broker while {ELIGIBLE_VERSION} is 1"
    return None


def forget_all(batch: Batch) -> None:
    """Forget who is eligible, after eligible replicas were turned off."""
    for topic in batch.state.topics():
        if not topic.is_deleting:
            for partition in topic.partitions:
                if partition.has_eligible or partition.former_members:
                    commit_partition(batch, topic, partition, _forgotten(partition), Reason.CONFIG_CHANGED)


def _forgotten(partition: Partition) -> PartitionChange:
    """Return the change that forgets who is eligible. One replica with every committed record stays in the ISR."""
    known = partition.elr or partition.last_known_elr
    last = [replica for replica in partition.last_known_elr if replica in known]
    isr = partition.isr or (*last, *known)[:1]
    return PartitionChange(isr=isr)


def judge_again(batch: Batch, topic: WorkingTopic, former_min_isr: int) -> None:
    """Find out who is eligible under another min.insync.replicas.

    A leader of Kafka may not have read a greater one yet, and commit alone when it asks for a smaller ISR. So a replica
    that leaves at its request is eligible only if the ISR is too small by the former value too.
    """
    if batch.state.has_eligible_leaders and not topic.is_deleting:
        for partition in topic.partitions:
            leader = batch.state.brokers.get(partition.leader)
            least = min(partition.min_isr_read or former_min_isr, former_min_isr)
            if leader is not None and leader.is_kraft and least < topic.min_isr and least != partition.min_isr_read:
                partition = commit_min_isr_read(topic, partition, least)
            if partition.elr or partition.former_members:
                commit_partition(batch, topic, partition, PartitionChange(), Reason.CONFIG_CHANGED)


def take_out_all(batch: Batch, broker: int, reason: Reason, *, has_former_logs: bool = False) -> None:
    """Take the replicas on a broker that is not live out of the eligible ones: their logs may have lost their ends.

    They have lost no more than that if the broker ``has_former_logs``.
    """
    if not batch.state.has_eligible_leaders:
        return
    alike = Alike(batch, take_out, (broker,))
    for topic in batch.state.topics():
        if not topic.is_deleting:
            for partition in topic.partitions.on({broker}):
                if broker in (*partition.isr, *partition.elr, *partition.former_members):
                    asked = (reason, has_former_logs)
                    alike.commit(topic, partition, broker, reason, has_former_logs, asked=asked)


def take_out(
    batch: Batch,
    topic: WorkingTopic,
    partition: Partition,
    broker: int,
    reason: Reason,
    has_former_log: bool = False,
) -> None:
    """Take one replica out of the eligible ones, and out of an ISR that waits for it.

    The last member of such an ISR is remembered as the last known leader.
    """
    known = (*partition.isr, *partition.elr, *partition.former_members)
    if batch.state.has_eligible_leaders and broker in known:
        isr = tuple([member for member in partition.isr if member != broker])
        gone = frozenset({broker})
        change = PartitionChange(isr=isr, unproven=gone, crashed=gone if has_former_log else frozenset())
        commit_partition(batch, topic, partition, change, reason)
