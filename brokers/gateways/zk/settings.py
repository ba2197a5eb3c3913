"""The settings of a gateway to ZooKeeper-mode brokers: who it is, and its limits."""

from typing import Literal

from brokers.gateways.shared.gateway_settings import (
    GatewayIdentity,
    GatewaySettings,
    Source,
    checked_identity,
)
from brokers.gateways.zk.messages import WRITING_IBPS
from brokers.process.given_settings import Bytes, Count, Millis
from conf.layers import SettingsError
from state.limits import Text


class Identity(GatewayIdentity, frozen=True, kw_only=True):
    """Which of the gateways this process is, and where its brokers' ZooKeeper is."""

    # As brokers have it in zookeeper.connect.
    zookeeper: str

    @property
    def gateways(self) -> frozenset[int]:
        return frozenset(voter.voter for voter in self.voters)


class Settings(GatewaySettings, frozen=True, kw_only=True):
    """The settings that only gateways of this kind have."""

    zookeeper_connect: str = ""
    broker_heartbeat_interval_ms: Millis = 2_000
    zookeeper_session_timeout_ms: Millis = 6_000
    zookeeper_connection_timeout_ms: Millis = 10_000
    controller_socket_timeout_ms: Millis = 30_000
    retry_backoff_ms: Millis = 100
    # The limits of what waits to be told to one broker.
    requests_waiting_max: Count = 400_000
    requests_waiting_bytes_max: Bytes = 268_435_456
    response_max_bytes: Bytes = 104_857_600
    inter_broker_listener_name: Text = "PLAINTEXT"
    # As brokers have it. With 2.6, brokers write ISRs into ZooKeeper themselves, and know no topic ids.
    inter_broker_protocol_version: Literal["3.9", "2.6"] = "3.9"

    @property
    def leaders_write_isrs(self) -> bool:
        """Whether leaders write their ISRs into ZooKeeper themselves, instead of asking the controller."""
        return self.inter_broker_protocol_version in WRITING_IBPS


SOURCE = Source(Settings)
load = SOURCE.load
settings_of = SOURCE.settings_of


def identity_of(settings: Settings) -> Identity:
    """Return the identity that settings name. Raises ``SettingsError`` that names a setting that does not fit."""
    fields = checked_identity(settings, (settings.inter_broker_listener_name,))
    if not settings.zookeeper_connect:
        raise SettingsError("zookeeper.connect: expected HOST:PORT,... as brokers have it, got ''")
    return Identity(**fields, zookeeper=settings.zookeeper_connect)
