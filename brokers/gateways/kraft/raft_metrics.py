"""What a gateway knows of the metadata quorum, under the names that dashboards for Kafka's controllers use.

Exporters name the bean ``kafka.server:type=raft-metrics`` in two ways, so each metric is served under both names.
"""

from collections.abc import Callable

from brokers.gateways.shared.health import role_of
from brokers.gateways.shared.metrics import SERIES as GATEWAY_SERIES
from brokers.gateways.shared.metrics import GatewayMeasures, GatewaySeries
from conf.metric_series import Labelled
from state.ids import NO_LEADER

# A gateway that knows no leader is to Kafka a voter that is not attached to one.
_STATES = {"leading": "leader", "following": "follower"}


def _state(measures: GatewayMeasures) -> Labelled:
    return {(_STATES.get(role_of(measures), "unattached"),): 1}


def _both(
    name: str, help: str, read: Callable[[GatewayMeasures], float | Labelled], *labels: str
) -> tuple[GatewaySeries, ...]:
    """Return a gauge under both names. If it has labels, the second is that of the second name."""
    first, second = (labels[:1], labels[1:]) if labels else ((), ())
    return (
        GatewaySeries(f"kafka_server_raftmetrics_{name}", "gauge", help, read, first),
        GatewaySeries(f"kafka_server_raft_metrics_{name}", "gauge", help, read, second),
    )


RAFT = (
    *_both("current_state", "1, with `leader`, `follower` or `unattached`.", _state, "current_state", "state"),
    *_both("current_leader", "The gateway that leads the metadata quorum; -1 if none.", lambda m: m.leader),
    *_both("current_vote", "Always -1: gateways do not vote, the engine names the leader.", lambda m: NO_LEADER),
    *_both("current_epoch", "The quorum epoch that it knows.", lambda m: m.quorum_epoch),
    *_both("high_watermark", "End of what brokers can read of its metadata log.", lambda m: m.end_offset),
    *_both("log_end_offset", "End of its metadata log on disk.", lambda m: m.end_offset),
    *_both("number_of_voters", "Gateways of the quorum.", lambda m: m.voters),
    *_both("commit_latency_avg", "Milliseconds in which decisions got to disk lately.", lambda m: m.commit_latency_ms),
    *_both("append_records_rate", "Records of its metadata log in a second lately.", lambda m: m.append_rate),
)  # fmt: skip

SERIES = GATEWAY_SERIES + RAFT
