"""The door: events in, decisions out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller_logic import (
    acls,
    adoption,
    balance,
    clock,
    config,
    deadline,
    deletion,
    entities,
    fencing,
    gateways,
    isr,
    isr_request,
    level,
    liveness,
    log_directories,
    log_end_report,
    observation,
    producer_ids,
    replica_log,
    report,
    requested_election,
    requested_reassignment,
    shadow,
    shutdown,
    takeover,
    tick,
    topics,
    watermark,
    written_isr,
)
from controller_logic.batch import Batch, Remembered
from state import events as e
from state.cluster import Outcome, State
from state.policy import Policy
from state.reason import Reason

_NO_OVERRIDES: Mapping[str, str] = {}

Handler = Callable[[Batch, Any], None]


def _malformed(batch: Batch, event: e.Malformed) -> None:
    """Reject text that is not an event. Name the field and what was expected."""
    batch.recorder.reject(event.field, event.message, Reason.MALFORMED)
    message = f"{event.field}: {event.message}" if event.field else event.message
    batch.recorder.answer_if_requested("INVALID_REQUEST", message)


def _progress(_batch: Batch, _event: e.Progress) -> None:
    """Do nothing: the event log went on without an event for this shard."""


HANDLERS: dict[type[e.AnyEvent | e.Malformed | e.Progress], Handler] = {
    # What brokers say
    e.BrokerRegister: liveness.register,
    e.BrokerHeartbeat: liveness.heartbeat,
    e.BrokerConnectionLost: liveness.connection_lost,
    e.ControlledShutdown: shutdown.controlled_shutdown,
    e.AlterIsr: isr.alter_isr,
    e.AlterIsrs: isr_request.alter_isrs,
    e.IsrWritten: written_isr.isr_written,
    e.LogEndOffset: watermark.log_end_offset,
    e.LogEndOffsets: log_end_report.log_end_offsets,
    e.ReplicaReport: report.replica_report,
    e.ReplicaReports: report.replica_reports,
    e.ReplicaLog: replica_log.replica_log,
    e.AllocateProducerIds: producer_ids.allocate,
    e.AssignReplicasToDirs: log_directories.assign_replicas_to_dirs,
    # What admins ask
    e.CreateTopic: topics.create_topic,
    e.AdoptTopic: adoption.adopt_topic,
    e.CreatePartitions: topics.create_partitions,
    e.DeleteTopic: deletion.delete_topic,
    e.AlterReassignment: requested_reassignment.alter_reassignment,
    e.ElectLeaders: requested_election.elect_leaders,
    e.AlterConfig: config.alter_config,
    e.BrokerUnregister: liveness.unregister,
    e.CreateAcls: acls.create_acls,
    e.DeleteAcls: acls.delete_acls,
    e.AlterEntity: entities.alter_entity,
    e.RaiseLevel: level.raise_level,
    # What the engine and its gateways say
    e.Tick: tick.tick,
    e.SessionsExtended: liveness.sessions_extended,
    e.LeaderImbalance: balance.leader_imbalance,
    e.ControllerStarted: takeover.controller_started,
    e.GatewayStarted: gateways.gateway_started,
    e.GatewayHeartbeat: gateways.gateway_heartbeat,
    # What is read of an observed cluster
    e.Observed: observation.observed,
    # Text that is not an event
    e.Malformed: _malformed,
    e.Progress: _progress,
}


def _comes_too_late(batch: Batch, event: e.AdminEvent) -> bool:
    return deadline.is_over(batch, event) or fencing.of_another_quorum_epoch(batch, event)


def _name_admin(batch: Batch) -> None:
    """Add the principal who asked to all decisions on the event at hand.

    What follows later, such as the end of a reassignment, is caused by other events and has no principal.
    """
    event = batch.logged.event
    if isinstance(event, e.AdminEvent) and event.principal:
        batch.recorder.name_admin(event.principal)


def _moves_clock(batch: Batch, event: e.LogEndOffsets) -> bool:
    """Return whether a report moves the clock, as each event of a log without a claim may."""
    return not batch.state.has_engine_clock and event.time_ms > batch.state.now_ms


def step(
    state: State,
    events: Sequence[e.Logged],
    policy: Policy,
    *,
    overrides: Mapping[str, str] = _NO_OVERRIDES,
    remembered: Remembered | None = None,
) -> Outcome:
    """Apply ``events``, in rising ``seq``, to one shard's state.

    Pure: the same state and events give the same outcome, wherever the event log is cut into batches and in
    any number of shards. Events that the state already contains are skipped.

    No event should make it raise. If one does, that is a defect, and ``guard`` leaves this event out.

    Settings come in layers, and a later layer wins: ``policy``, the claim's (``controller_started``), the cluster's
    dynamic ones, ``overrides``, a topic's own. Calls with the same ``policy`` are cheaper if they share what is
    ``remembered``.
    """
    batch = Batch(state, policy, overrides, remembered)
    working = batch.state
    for logged in events:
        if logged.seq > working.seq:
            if batch.log_ends and (not isinstance(logged.event, e.LogEndOffsets) or _moves_clock(batch, logged.event)):
                log_end_report.settle_log_ends(batch)
            batch.begin(logged)
            if clock.is_admitted(batch) and shadow.is_let_in(batch):
                event = logged.event
                if not (isinstance(event, e.AdminEvent) and _comes_too_late(batch, event)):
                    HANDLERS[type(event)](batch, event)
            _name_admin(batch)
    log_end_report.settle_log_ends(batch)
    return batch.outcome()
