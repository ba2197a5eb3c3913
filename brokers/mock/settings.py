"""The settings of a mock broker, under Kafka's names where Kafka has one."""

from pathlib import Path
from typing import Any

import msgspec

from brokers.process.given_settings import NO_PORT, Bytes, Count, MetricsPort, Millis, converted


class Settings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda n: n.replace("_", ".")
):
    """The settings. Each field's outward name has dots for underscores.

    Defaults are Kafka's, except ``replica.fetch.backoff.ms`` (1000 in Kafka): a mock cluster lives for a minute, and
    its followers should not sleep through a change of leader.
    """

    broker_heartbeat_interval_ms: Millis = 2_000
    initial_broker_registration_timeout_ms: Millis = 300_000
    controlled_shutdown_enable: bool = True
    controlled_shutdown_timeout_ms: Millis = 10_000
    watermark_interval_ms: Millis = 100
    decisions_poll_interval_ms: Millis = 15
    bus_unreachable_max_ms: Millis = 120_000
    replica_lag_time_max_ms: Millis = 30_000
    replica_fetch_wait_max_ms: Millis = 500
    replica_fetch_min_bytes: Bytes = 1
    replica_fetch_max_bytes: Bytes = 1_048_576
    replica_fetch_response_max_bytes: Bytes = 10_485_760
    replica_fetch_backoff_ms: Millis = 100
    replica_socket_timeout_ms: Millis = 30_000
    replica_high_watermark_checkpoint_interval_ms: Millis = 5_000
    alter_isr_timeout_ms: Millis = 10_000
    alter_isr_backoff_ms: Millis = 500
    log_segment_bytes: Bytes = 1_073_741_824
    message_max_bytes: Bytes = 1_048_588
    min_insync_replicas: Count = 1
    fetch_max_bytes: Bytes = 57_671_680
    fetch_max_wait_ms: Millis = 60_000
    socket_request_max_bytes: Bytes = 104_857_600
    max_connections: Count = 1_000
    connections_max_idle_ms: Millis = 600_000
    purgatory_max_requests: Count = 10_000
    metrics_host: str = "127.0.0.1"
    metrics_port: MetricsPort = NO_PORT
    metrics_ssl_keystore_location: str = ""
    metrics_token_file: str = ""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Which broker this process is, and where it lives."""

    broker: int
    bus: Path | str
    directory: Path
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None


def settings_of(given: dict[str, Any]) -> Settings:
    """Make settings from Kafka's names (``given_settings.converted``)."""
    return converted(given, Settings)
