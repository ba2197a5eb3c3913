"""The metrics of a gateway to brokers in ZooKeeper mode: those of a KRaft gateway, except the ones of its log."""

from brokers.gateways.shared.metrics import SERIES as ALL_SERIES

_OF_THE_LOG = frozenset(
    {
        "isrflow_gateway_log_start_offset",
        "isrflow_gateway_log_end_offset",
        "isrflow_gateway_broker_lag_max",
        "isrflow_gateway_blind",
    }
)
SERIES = tuple(series for series in ALL_SERIES if series.name not in _OF_THE_LOG)
