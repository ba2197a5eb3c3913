"""The identity and the settings that gateways of both kinds have."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from brokers.gateways.shared.controller_file import as_gateways
from brokers.process.given_settings import Bytes, Count, MetricsPort, Millis
from brokers.voters import Voter, voters_of
from brokers.wire.server import Limits
from conf.cross_checks import GATEWAY_HEARTBEAT_MS
from conf.environment import REFERENCES
from conf.layers import Layers, SettingsError, as_text
from conf.settings import DEFAULT_BUS, BusUrl
from state.policy_fit import expected

REFERENCE = f"conf/{REFERENCES[1]}"
# Beside an engine and a standby, which take 9464 and 9465.
METRICS_PORT = 9_466
Events = Annotated[int, Meta(ge=1_000, le=1_000_000)]
MaybeFile = Annotated[str, Meta(max_length=4_096)]
# -1, Kafka's default of node.id, is none.
MaybeNodeId = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
Listeners = Annotated[
    str,
    Meta(
        pattern=r"^([A-Za-z0-9_.-]+://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})?\Z",
        description="one listener such as CONTROLLER://0.0.0.0:9093",
    ),
]
_LISTENER = re.compile(r"(.+)://(.+):([0-9]+)")
_HEARTBEAT, _FETCH = "gateway.heartbeat.interval.ms", "controller.quorum.fetch.timeout.ms"


class GatewayIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The place of this process among the voters."""

    gateway: int
    voters: tuple[Voter, ...]
    # Kafka's id of the cluster.
    cluster_id: str
    # Host and port to listen on, if not at the place that brokers know.
    listener: tuple[str, int] | None = None

    @property
    def here(self) -> Voter:
        return next(voter for voter in self.voters if voter.voter == self.gateway)

    @property
    def place(self) -> tuple[str, int]:
        """The host and the port to listen on; port 0 for any that is free."""
        return self.listener or (self.here.host, self.here.port)


class GatewaySettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda n: n.replace("_", ".")
):
    """Settings. Each field's outward name has dots for underscores, and is Kafka's where Kafka has one.

    ``conf/gateway-reference.toml`` explains each.
    """

    node_id: MaybeNodeId = -1
    controller_quorum_voters: str = ""
    cluster_id: str = ""
    listeners: Listeners = ""
    bus: BusUrl = DEFAULT_BUS
    kafka_client_config: MaybeFile = ""
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
    metrics_port: MetricsPort = METRICS_PORT
    metrics_ssl_keystore_location: MaybeFile = ""
    metrics_token_file: MaybeFile = ""
    log_format: Literal["auto", "json", "console"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def limits(self) -> Limits:
        """The limits on what clients may use."""
        return Limits(
            socket_request_max_bytes=self.socket_request_max_bytes,
            max_connections=self.max_connections,
            max_connections_per_ip=self.max_connections_per_ip,
            connections_max_idle_ms=self.connections_max_idle_ms,
        )


class _GatewayLayers(Layers):
    def of_kafka(self, given: Mapping[str, str]) -> dict[str, str]:
        return as_gateways(given, self.keys)


S = TypeVar("S", bound=GatewaySettings)


class Source(Generic[S]):
    """Where the settings of one kind of gateway come from: the same sources as the engine's (``conf.loader``)."""

    def __init__(self, kind: type[S]) -> None:
        self._kind = kind
        self.layers = _GatewayLayers(
            {field.encode_name: field.type for field in msgspec.structs.fields(kind)}, REFERENCE
        )

    def load(
        self,
        path: Path | None = None,
        sets: Iterable[str] = (),
        *,
        bus: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> S:
        """Return the settings of a file, the environment, ``key=value`` texts and ``--bus``; the later wins.

        Raises ``SettingsError``.
        """
        return msgspec.convert(self.layers.merged(path, sets, bus=bus, environment=environment), self._kind)

    def settings_of(self, given: Mapping[str, Any]) -> S:
        """Make settings from their names; numbers may be text. Raises ``SettingsError``."""
        return self.load(sets=[f"{name}={as_text(value)}" for name, value in given.items()])


def checked_identity(settings: GatewaySettings, listener_names: Collection[str]) -> dict[str, Any]:
    """Return the fields of ``GatewayIdentity``. Raises ``SettingsError`` that names a setting that does not fit.

    ``listener_names`` are the names that the listener may have.
    """
    try:
        voters = voters_of(settings.controller_quorum_voters)
    except ValueError as error:
        raise SettingsError(f"controller.quorum.voters: {error}") from error
    if settings.node_id not in [voter.voter for voter in voters]:
        known = settings.controller_quorum_voters
        raise SettingsError(f"node.id: expected one of the voters {known}, got {settings.node_id}")
    if not settings.cluster_id:
        raise SettingsError("cluster.id: expected the id of the brokers' cluster, got ''")
    values = {name: getattr(settings, name.replace(".", "_")) for name in (_HEARTBEAT, _FETCH)}
    if values[_HEARTBEAT] >= values[_FETCH]:
        raise SettingsError(expected(values, _HEARTBEAT, "<", _FETCH, "a gateway is heard by its heartbeats"))
    listener = _LISTENER.fullmatch(settings.listeners)
    if listener and listener[1] not in listener_names:
        wanted = " or ".join(listener_names)
        raise SettingsError(f"listeners: expected a listener named {wanted}, got {settings.listeners!r}")
    return {
        "gateway": settings.node_id,
        "voters": voters,
        "cluster_id": settings.cluster_id,
        "listener": (listener[2].strip("[]"), int(listener[3])) if listener else None,
    }
