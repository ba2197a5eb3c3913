"""The identity and the settings of a gateway."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from brokers.gateways.kraft.log.intervals import SNAPSHOT_INTERVAL_BYTES
from brokers.gateways.shared.gateway_settings import (
    GatewayIdentity,
    GatewaySettings,
    MaybeFile,
    Source,
    checked_identity,
)
from brokers.process.given_settings import Bytes, Count, Millis
from brokers.wire.server import Limits
from conf.layers import SettingsError
from conf.super_users import AuthorizerClass, SuperUsers
from state.features import KRAFT_LEVELS

DAY_MS = 86_400_000
# In each directory that kafka-storage has formatted.
_KAFKAS_OWN = "meta.properties"
# Per connection. Each one may hold a response of ``fetch.max.bytes`` for a client that does not read. Brokers have one
# in flight.
REQUESTS_IN_FLIGHT = 4
# A broker that does not reach the leader asks each of the voters once in about this many time-outs
# (``KafkaRaftClient.maybeSendFetchToBestNode``). From the leader it fetches twice a second.
ASKING_TIMEOUTS = 2
# Names of listeners, with commas.
ListenerNames = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,255}(,[A-Za-z0-9_.-]{1,255}){0,7}\Z")]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
# Empty: required with SSL, where only a certificate says who a client is, and none with SASL_SSL.
ClientAuthSetting = Literal["", "none", "requested", "required"]
Rules = Annotated[str, Meta(max_length=65_536)]
# A name that is a CN alone becomes that CN, as ``broker.principal`` expects it by default. A longer name stays whole,
# because an authority may have given the same CN to another subject.
DEFAULT_RULES = "RULE:^CN=([^,]+)$/$1/,DEFAULT"
AuditLevel = Literal["debug", "info", "off"]
TokenMillis = Annotated[int, Meta(ge=1, le=3_650 * DAY_MS)]


class Identity(GatewayIdentity, frozen=True, kw_only=True):
    """The identity of a gateway: its place among the voters, its Kafka cluster, and the directory of its log."""

    directory: Path
    # Where the audit log is; None if it is in the same directory.
    audit_directory: Path | None = None
    # Brokers' directories of the metadata log, from which a lost log is rebuilt.
    copies: tuple[Path, ...] = ()


class Settings(GatewaySettings, frozen=True, kw_only=True):
    """The settings that only gateways of this kind have."""

    metadata_log_dir: MaybeFile = ""
    # Brokers' directories of the metadata log, with commas.
    rebuild_from_dirs: str = ""
    state_wait_max_ms: Millis = 1_200
    followed_wait_max_ms: Millis = 500
    metadata_log_max_record_bytes_between_snapshots: Bytes = SNAPSHOT_INTERVAL_BYTES
    rebuild_wait_max_ms: Millis = 30_000
    fetch_max_bytes: Bytes = 8_388_608
    fetch_max_wait_ms: Millis = 1_000
    queued_max_request_bytes: Bytes = 268_435_456
    max_connections_unauthenticated: Count = 200
    authentication_timeout_ms: Millis = 10_000
    # As brokers name them; the first one is the one that this gateway's answers name.
    controller_listener_names: ListenerNames = "CONTROLLER"
    # From 1 on, a gateway that leads writes the voters into the metadata log.
    kraft_version: Annotated[int, Meta(ge=KRAFT_LEVELS.low, le=KRAFT_LEVELS.high)] = KRAFT_LEVELS.low
    super_users: SuperUsers = ""
    authorizer_class_name: AuthorizerClass = ""
    allow_everyone_if_no_acl_found: bool = False
    # On a PLAINTEXT listener any program can pose as a broker, and speak for any client.
    allow_authorizer_on_plaintext: bool = False
    authorizer_log_dir: MaybeFile = ""
    authorizer_log_level: AuditLevel = "info"
    security_protocol: SecurityProtocol = "PLAINTEXT"
    ssl_keystore_location: MaybeFile = ""
    ssl_truststore_location: MaybeFile = ""
    ssl_client_auth: ClientAuthSetting = ""
    ssl_endpoint_identification_algorithm: Literal["https", ""] = "https"
    ssl_principal_mapping_rules: Rules = DEFAULT_RULES
    broker_principal: str = "User:broker-<id>"
    gateway_principal: str = "User:gateway-<id>"
    sasl_enabled_mechanisms: str = "SCRAM-SHA-512"
    sasl_credentials_file: MaybeFile = ""
    sasl_username: str = ""
    sasl_password_file: MaybeFile = ""
    delegation_token_secret_key_file: MaybeFile = ""
    delegation_token_max_lifetime_ms: TokenMillis = 7 * DAY_MS
    delegation_token_expiry_time_ms: TokenMillis = DAY_MS

    @property
    def listener_names(self) -> list[str]:
        """The names that brokers have for this gateway's listener."""
        return self.controller_listener_names.split(",")

    @property
    def asked_within_ms(self) -> int:
        """How long a broker that asked this gateway while another one led counts as heard."""
        return ASKING_TIMEOUTS * self.controller_quorum_fetch_timeout_ms

    @property
    def limits(self) -> Limits:
        """The limits on what clients may use."""
        return replace(
            super().limits,
            queued_max_request_bytes=self.queued_max_request_bytes,
            requests_in_flight=REQUESTS_IN_FLIGHT,
            max_connections_unauthenticated=self.max_connections_unauthenticated,
            authentication_timeout_ms=self.authentication_timeout_ms,
        )


SOURCE = Source(Settings)
load = SOURCE.load
settings_of = SOURCE.settings_of


def identity_of(settings: Settings) -> Identity:
    """Return the identity that settings name. Raises ``SettingsError`` that names a setting that does not fit."""
    fields = checked_identity(settings, settings.listener_names)
    if not settings.metadata_log_dir:
        raise SettingsError("metadata.log.dir: expected the directory of the metadata log, got ''")
    if (Path(settings.metadata_log_dir) / _KAFKAS_OWN).exists():
        raise SettingsError(
            f"metadata.log.dir: {settings.metadata_log_dir} holds the storage of one of Kafka's own nodes: name "
            "another directory. Brokers that Kafka's controllers led know topics that a gateway's log does not have"
        )
    return Identity(
        **fields,
        directory=Path(settings.metadata_log_dir),
        audit_directory=Path(settings.authorizer_log_dir) if settings.authorizer_log_dir else None,
        copies=tuple(Path(one.strip()) for one in settings.rebuild_from_dirs.split(",") if one.strip()),
    )
