"""Check what must be true some time after all faults are over (L of docs/invariants.md)."""

from typing import Any

from state.events import TopicPartition
from state.partition import Partition, TopicState
from tests.simulation.logs_seen import Record


def unsettled(simulation: Any) -> tuple[str, str] | None:
    """Return the first liveness rule that does not hold yet, and the evidence."""
    state = simulation.state
    for broker, process in sorted(simulation.processes.items()):
        lifecycle_state = process.broker.lifecycle_state if process.alive and process.broker is not None else "gone"
        known = state.clusters[0].brokers.get(broker)
        if lifecycle_state != "running" or known is None or not known.is_active:
            return "L2", f"broker {broker} is {lifecycle_state}, and {known and known.state.name} to the engine"
    for topic in state.topics.values():
        if topic.state != TopicState.created or topic.deletion_waits:
            return "L9", f"{topic.topic} is to be deleted, and is {topic.state.name}"
        for partition in topic.partitions:
            found = _partition(simulation, TopicPartition(topic.topic, partition.partition), partition)
            if found is not None:
                return found
    return _left_over(simulation)


def _left_over(simulation: Any) -> tuple[str, str] | None:
    for broker, process in sorted(simulation.processes.items()):
        for place in process.broker.partitions:
            if place.topic not in simulation.state.topics:
                return "L9", f"broker {broker} still holds {place}, which is deleted"
    for sending in simulation.sending:
        if not sending.done():
            return "L5", f"{sending.get_name()} waits for an answer still"
    vanished = simulation.checkers.clients.vanished(simulation.checkers.logs)
    return None if vanished is None else ("D7", vanished)


def _partition(simulation: Any, place: TopicPartition, partition: Partition) -> tuple[str, str] | None:
    if partition.leader < 0:
        return "L8", f"{place} has no leader; ISR {partition.isr}"
    if partition.adding_replicas or partition.removing_replicas or partition.removed:
        moving = (partition.adding_replicas, partition.removing_replicas, partition.removed)
        return "L7", f"{place} is still reassigned: adding {moving[0]}, removing {moving[1]}, removed {moving[2]}"
    if simulation.scenery.balanced and partition.leader != partition.replicas[0] in partition.isr:
        return "L10", f"{place} is led by {partition.leader}, and {partition.replicas[0]} could"
    if set(partition.isr) != set(partition.replicas):
        return "L3", f"the ISR of {place} is {partition.isr}, its replicas are {partition.replicas}"
    logs: dict[int, list[Record]] = {}
    for broker in partition.replicas:
        held = simulation.processes[broker].broker.partitions.get(place)
        view = (held.leader, held.leader_epoch, held.partition_epoch) if held is not None else None
        record = (partition.leader, partition.leader_epoch, partition.partition_epoch)
        if held is None or view != record:
            return "L4", f"broker {broker} holds {place} as {view}, the engine as {record}"
        # A follower may show less until the next high watermark is decided.
        if held.is_leader and held.high_watermark != held.log.log_end_offset:
            return "L5", f"{place} on {broker} ends at {held.log.log_end_offset}, high watermark {held.high_watermark}"
        logs[broker] = simulation.checkers.logs.of(broker, place)
    if any(log != logs[partition.leader] for log in logs.values()):
        return "L6", f"the logs of {place} differ: " + ", ".join(f"{b}: {len(log)}" for b, log in logs.items())
    return None
