"""The settings of a gateway to ZooKeeper-mode brokers: who it is, and its limits."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from brokers.given_settings import Bytes, Count, Millis, converted
from brokers.voters import Voter
from conf.cross_checks import GATEWAY_HEARTBEAT_MS
from state.limits import Text

Events = Annotated[int, Meta(ge=1_000, le=1_000_000)]


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the gateways this process is, and where its brokers' ZooKeeper is."""

    gateway: int
    voters: tuple[Voter, ...]
    # As brokers have it in zookeeper.connect.
    zookeeper: str
    # Kafka's id of the cluster. A new ZooKeeper gets it.
    cluster_id: str
    # None: the port that brokers know.
    listen_port: int | None = None

    @property
    def here(self) -> Voter:
        return next(voter for voter in self.voters if voter.voter == self.gateway)

    @property
    def gateways(self) -> frozenset[int]:
        return frozenset(voter.voter for voter in self.voters)


class Settings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda n: n.replace("_", ".")
):
    """The settings. Each field's outward name has dots for underscores, and is Kafka's where Kafka has one."""

    gateway_heartbeat_interval_ms: Millis = GATEWAY_HEARTBEAT_MS
    gateway_lateness_ms_min: Millis = 250
    controller_quorum_fetch_timeout_ms: Millis = 2_000
    broker_heartbeat_interval_ms: Millis = 2_000
    decisions_poll_interval_ms: Millis = 10
    bus_unreachable_max_ms: Millis = 120_000
    answer_timeout_ms: Millis = 20_000
    events_waiting_max: Events = 100_000
    zookeeper_session_timeout_ms: Millis = 6_000
    zookeeper_connection_timeout_ms: Millis = 10_000
    controller_socket_timeout_ms: Millis = 30_000
    retry_backoff_ms: Millis = 100
    # Of what one broker has yet to be told.
    requests_waiting_max: Count = 400_000
    requests_waiting_bytes_max: Bytes = 268_435_456
    response_max_bytes: Bytes = 104_857_600
    inter_broker_listener_name: Text = "PLAINTEXT"
    socket_request_max_bytes: Bytes = 104_857_600
    max_connections: Count = 2_000
    max_connections_per_ip: Count = 1_000
    connections_max_idle_ms: Millis = 600_000


def settings_of(given: dict[str, Any]) -> Settings:
    """Make settings from their names (``given_settings.converted``)."""
    return converted(given, Settings)
