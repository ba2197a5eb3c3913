"""The metrics of a mock broker."""

import msgspec

from conf.metric_series import Labelled, Series


class BrokerMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """A mock broker at one moment."""

    broker: int
    # -1 until it has registered.
    broker_epoch: int = -1
    led: int = 0
    followed: int = 0
    under_replicated: int = 0
    # Logs of replicas that it no longer has, set aside in its directory.
    strays: int = 0
    # Summed over its replicas.
    log_records: int = 0
    # Records of led partitions above the high watermark.
    uncommitted: int = 0
    # Events on their way to the bus.
    events: int = 0
    # Requests of clients and followers that wait for records.
    requests: int = 0


_Series = Series[BrokerMeasures, float | Labelled]

SERIES = (
    _Series("isrflow_mock_broker_info", "gauge", "Always 1.", lambda m: {(str(m.broker),): 1}, ("broker",)),
    _Series("isrflow_mock_broker_epoch", "gauge", "Its broker epoch, or -1.", lambda m: m.broker_epoch),
    _Series("isrflow_mock_broker_led_partitions", "gauge", "Partitions that it leads.", lambda m: m.led),
    _Series("isrflow_mock_broker_followed_partitions", "gauge", "Partitions that it follows.", lambda m: m.followed),
    _Series(
        "isrflow_mock_broker_under_replicated_partitions",
        "gauge",
        "Led partitions with fewer in-sync replicas than assigned.",
        lambda m: m.under_replicated,
    ),
    _Series("isrflow_mock_broker_stray_logs", "gauge", "Logs that it set aside as strays.", lambda m: m.strays),
    _Series("isrflow_mock_broker_log_records", "gauge", "Records in its logs.", lambda m: m.log_records),
    _Series(
        "isrflow_mock_broker_uncommitted_records",
        "gauge",
        "Records of led partitions above the high watermark.",
        lambda m: m.uncommitted,
    ),
    _Series("isrflow_mock_broker_waiting_events", "gauge", "Events on their way to the bus.", lambda m: m.events),
    _Series("isrflow_mock_broker_waiting_requests", "gauge", "Requests that wait for records.", lambda m: m.requests),
)
