"""The identity and the settings that gateways of both kinds have."""

from typing import Annotated

import msgspec
from msgspec import Meta

from brokers.process.given_settings import NO_PORT, Bytes, Count, MetricsPort, Millis
from brokers.voters import Voter
from brokers.wire.server import Limits
from conf.cross_checks import GATEWAY_HEARTBEAT_MS

Events = Annotated[int, Meta(ge=1_000, le=1_000_000)]


class GatewayIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The place of this process among the voters."""

    gateway: int
    voters: tuple[Voter, ...]
    # Kafka's id of the cluster.
    cluster_id: str
    # Without one, the gateway listens on the port that brokers know.
    listen_port: int | None = None

    @property
    def here(self) -> Voter:
        return next(voter for voter in self.voters if voter.voter == self.gateway)

    @property
    def port(self) -> int:
        """The port to listen on; 0 for any that is free."""
        return self.here.port if self.listen_port is None else self.listen_port


class GatewaySettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda n: n.replace("_", ".")
):
    """Settings. Each field's outward name has dots for underscores, and is Kafka's where Kafka has one."""

    gateway_heartbeat_interval_ms: Millis = GATEWAY_HEARTBEAT_MS
    gateway_lateness_ms_min: Millis = 250
    controller_quorum_fetch_timeout_ms: Millis = 2_000
    decisions_poll_interval_ms: Millis = 10
    bus_unreachable_max_ms: Millis = 120_000
    answer_timeout_ms: Millis = 20_000
    events_waiting_max: Events = 100_000
    socket_request_max_bytes: Bytes = 104_857_600
    max_connections: Count = 2_000
    max_connections_per_ip: Count = 1_000
    connections_max_idle_ms: Millis = 600_000
    # How long a gateway that stops waits for another one to lead.
    hand_over_timeout_ms: Millis = 1_500
    metrics_host: str = "127.0.0.1"
    metrics_port: MetricsPort = NO_PORT
    metrics_ssl_keystore_location: str = ""
    metrics_token_file: str = ""

    @property
    def limits(self) -> Limits:
        """The limits on what clients may use."""
        return Limits(
            socket_request_max_bytes=self.socket_request_max_bytes,
            max_connections=self.max_connections,
            max_connections_per_ip=self.max_connections_per_ip,
            connections_max_idle_ms=self.connections_max_idle_ms,
        )
