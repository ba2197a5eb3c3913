"""What public dashboards ask a controller for, by name, and which of it is served."""

import json
from pathlib import Path

from brokers.gateways.kraft.raft_metrics import RAFT
from sinks.kafka_metric_names import KAFKA

DASHBOARDS: dict[str, list[str]] = json.loads(Path(__file__).with_name("public_dashboards.json").read_text())
# Why a name has no series. The counters have one under the same name with _total, as the text format asks for.
NOT_SERVED = {
    "kafka_controller_controllerstats_uncleanleaderelectionspersec": "a counter: ask with _total",
    "kafka_server_replicamanager_isrexpandspersec": "a counter: ask with _total",
    "kafka_server_replicamanager_isrshrinkspersec": "a counter: ask with _total",
    "kafka_server_replicamanager_straypartitionscount": (
        "of Confluent Server; brokers of Kafka 3.9 to 4.4 do not serve it, and tell no controller which logs are stray"
    ),
    "kafka_server_raftmetrics_fetch_records_rate": "a gateway writes its log from the decisions, and fetches nothing",
    "kafka_server_raftchannelmetrics_incoming_byte_total": "gateways do not talk to each other",
    "kafka_server_raftchannelmetrics_outgoing_byte_total": "gateways do not talk to each other",
    "kafka_server_raftchannelmetrics_request_total": "gateways do not talk to each other",
    "kafka_server_raftchannelmetrics_response_total": "gateways do not talk to each other",
}


def test_public_dashboards_find_a_series_for_each_name_or_the_reason_is_known() -> None:
    served = {series.exposed for series in (*KAFKA, *RAFT)}
    missing = {name for names in DASHBOARDS.values() for name in names if name not in served}
    assert missing == set(NOT_SERVED)
    assert {name for name, why in NOT_SERVED.items() if why == "a counter: ask with _total"} <= {
        name.removesuffix("_total") for name in served
    }
