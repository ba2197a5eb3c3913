"""The door: events in, decisions out."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from controller_logic import (
    admin,
    balance,
    clock,
    config,
    deadline,
    deletion,
    gateways,
    isr,
    liveness,
    no_op,
    producer_ids,
    report,
    requested_election,
    requested_reassignment,
    shutdown,
    takeover,
)
from controller_logic.draft import Draft
from controller_logic.watermark import advance_watermarks, log_end_offset
from state import events as e
from state.cluster import Outcome, State
from state.policy import Policy
from state.reason import Reason
from state.rules import ENGINE_CLOCK_RULES

_NO_OVERRIDES: Mapping[str, str] = {}


def step(
    state: State,
    events: Sequence[e.Logged],
    policy: Policy,
    *,
    overrides: Mapping[str, str] = _NO_OVERRIDES,
) -> Outcome:
    """Work ``events``, in rising ``seq``, into one shard's state.

    Pure: the same state and events give the same outcome, wherever a log is cut into batches, and
    in whatever number of shards. Never raises. Events that the state has already taken in are
    passed over. ``policy`` is the base of the settings; those that ``controller_started`` brought
    are laid over it, then the cluster's dynamic ones, then ``overrides``; a topic's own stand above
    all of them.
    """
    draft = Draft(state, policy, overrides)
    for logged in events:
        if logged.seq > draft.seq:
            draft.begin(logged)
            if draft.rules_version < ENGINE_CLOCK_RULES or clock.is_admitted(draft):
                _take_in(draft, logged.event)
    return draft.outcome()


def _take_in(draft: Draft, event: e.AnyEvent | e.Malformed | e.Progress) -> None:
    match event:
        case e.LogEndOffset():
            log_end_offset(draft, event)
        case e.BrokerHeartbeat():
            liveness.heartbeat(draft, event)
        case e.AlterIsr():
            isr.alter_isr(draft, event)
        case e.Tick():
            _tick(draft)
        case e.ReplicaReport():
            report.replica_report(draft, event)
        case e.BrokerRegister():
            liveness.register(draft, event)
        case e.BrokerConnectionLost():
            liveness.connection_lost(draft, event)
        case e.ControlledShutdown():
            shutdown.controlled_shutdown(draft, event)
        case _:
            if not (isinstance(event, e.AdminEvent) and deadline.is_over(draft, event)):
                _take_in_rare(draft, event)


_Engine = (
    e.ControllerStarted | e.LeaderImbalance | e.SessionsExtended | e.GatewayStarted | e.GatewayHeartbeat | e.Malformed
)


def _take_in_rare(
    draft: Draft,
    event: e.CreateTopic
    | e.DeleteTopic
    | e.CreatePartitions
    | e.AlterReassignment
    | e.ElectLeaders
    | e.AlterConfig
    | e.BrokerUnregister
    | e.AllocateProducerIds
    | _Engine
    | e.Progress,
) -> None:
    match event:
        case e.CreateTopic():
            admin.create_topic(draft, event)
        case e.CreatePartitions():
            admin.create_partitions(draft, event)
        case e.DeleteTopic():
            deletion.delete_topic(draft, event)
        case e.AlterReassignment():
            requested_reassignment.alter_reassignment(draft, event)
        case e.ElectLeaders():
            requested_election.elect_leaders(draft, event)
        case e.BrokerUnregister():
            liveness.unregister(draft, event)
        case e.AlterConfig():
            config.alter_config(draft, event)
        case e.AllocateProducerIds():
            producer_ids.allocate(draft, event)
        case e.Progress():
            pass
        case _:
            _take_in_from_engine(draft, event)


def _take_in_from_engine(draft: Draft, event: _Engine) -> None:
    match event:
        case e.ControllerStarted():
            takeover.controller_started(draft, event)
        case e.LeaderImbalance():
            balance.leader_imbalance(draft, event)
        case e.SessionsExtended():
            liveness.sessions_extended(draft, event)
        case e.GatewayStarted():
            gateways.gateway_started(draft, event)
        case e.GatewayHeartbeat():
            gateways.gateway_heartbeat(draft, event)
        case e.Malformed():
            draft.reject(event.field, event.message, Reason.MALFORMED)
            draft.answer_if_asked("INVALID_REQUEST", event.message)
        case _:
            assert_never(event)


def _tick(draft: Draft) -> None:
    gateways.watch_leader(draft)
    # A partition that lost a broker has been said once: what waits does so until the next tick.
    if not liveness.expire_sessions(draft):
        deletion.begin_waiting(draft)
    advance_watermarks(draft)
    balance.check_balance(draft)
    no_op.say_nothing(draft)
    draft.answer_if_asked()
