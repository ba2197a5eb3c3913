"""The metrics of a gateway's own process."""

from collections.abc import Mapping

import msgspec

from conf.metric_series import Labelled, Series
from state.broker import REGISTERED_STATES
from state.ids import NO_LEADER


class GatewayMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway at one moment."""

    gateway: int
    is_serving: bool = False
    # What it does at its start, and for how long; empty once it serves.
    phase: str = ""
    leads: bool = False
    # The gateway that leads as far as it knows; -1 if none.
    leader: int = NO_LEADER
    quorum_epoch: int = 0
    decided_seq: int = 0
    start_offset: int = 0
    end_offset: int = 0
    # By state.
    brokers: Mapping[str, int] = {}
    # The records that the serving broker furthest behind has yet to fetch.
    lag_max: int = 0
    events: int = 0
    event_bytes: int = 0
    is_cut_off: bool = False
    is_blind: bool = False
    # Gateways of its quorum.
    voters: int = 0
    # Lately: the time in which decisions got to disk, and records a second.
    commit_latency_ms: float = 0.0
    append_rate: float = 0.0
    # How many brokers it heard lately.
    heard: int = 0
    # How many settings in brokers' files the engine's values overrule.
    overruled: int = 0


GatewaySeries = Series[GatewayMeasures, float | Labelled]

SERIES = (
    GatewaySeries("isrflow_gateway_info", "gauge", "Always 1.", lambda m: {(str(m.gateway),): 1}, ("gateway",)),
    GatewaySeries("isrflow_gateway_serving", "gauge", "1 while it serves brokers.", lambda m: float(m.is_serving)),
    GatewaySeries("isrflow_gateway_leads", "gauge", "1 while it leads the metadata quorum.", lambda m: float(m.leads)),
    GatewaySeries("isrflow_gateway_quorum_epoch", "gauge", "The quorum epoch that it knows.", lambda m: m.quorum_epoch),
    GatewaySeries(
        "isrflow_gateway_decided_seq",
        "gauge",
        "The seq of the last event whose decisions are in its metadata log, or known to it if it has none.",
        lambda m: m.decided_seq,
    ),
    GatewaySeries("isrflow_gateway_log_start_offset", "gauge", "Start of its metadata log.", lambda m: m.start_offset),
    GatewaySeries("isrflow_gateway_log_end_offset", "gauge", "End of its metadata log.", lambda m: m.end_offset),
    GatewaySeries(
        "isrflow_gateway_brokers",
        "gauge",
        "Brokers that it knows, by state.",
        lambda m: {(state.name,): m.brokers.get(state.name, 0) for state in REGISTERED_STATES},
        ("state",),
    ),
    GatewaySeries(
        "isrflow_gateway_brokers_heard",
        "gauge",
        "Brokers that it heard lately: within controller.quorum.fetch.timeout.ms if it leads.",
        lambda m: m.heard,
    ),
    GatewaySeries(
        "isrflow_gateway_overruled_settings",
        "gauge",
        "Settings in brokers' own files that do not count, because the engine decides by other values.",
        lambda m: m.overruled,
    ),
    GatewaySeries(
        "isrflow_gateway_broker_lag_max",
        "gauge",
        "Records of the metadata log that the serving broker furthest behind has yet to fetch. 0 if it does not lead.",
        lambda m: m.lag_max,
    ),
    GatewaySeries(
        "isrflow_gateway_waiting_events",
        "gauge",
        "Events on their way to the engine.",
        lambda m: m.events,
    ),
    GatewaySeries("isrflow_gateway_waiting_event_bytes", "gauge", "Their size.", lambda m: m.event_bytes),
    GatewaySeries(
        "isrflow_gateway_cut_off",
        "gauge",
        "1 if the bus has accepted nothing for so long that another gateway may lead.",
        lambda m: float(m.is_cut_off),
    ),
    GatewaySeries(
        "isrflow_gateway_blind",
        "gauge",
        "1 if it cannot read decisions, or cannot put them on disk.",
        lambda m: float(m.is_blind),
    ),
)
