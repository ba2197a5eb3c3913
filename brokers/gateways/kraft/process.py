"""The process of a gateway to brokers of Kafka 4."""

import asyncio
from typing import NamedTuple

import structlog

from brokers.gateways.kraft.following.decision_applier import SupersededError
from brokers.gateways.kraft.gateway import Gateway
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.raft_metrics import SERIES
from brokers.gateways.kraft.security.settings import Security, security_of
from brokers.gateways.kraft.security.token_key import TokenKey
from brokers.gateways.kraft.settings import Identity, Settings, identity_of
from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.gateways.shared.starting import opened
from brokers.gateways.shared.watched import watched
from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.process.ending import stopped_by_signals, told
from bus.interface import BusError
from conf.garbage import collect_rarely
from conf.layers import SettingsError
from conf.logs import configure
from conf.phases import Phases
from conf.security.exposure import Protection, protection_of
from state.shadow import ShadowError
from state.stored.codec import CodecError


class Checked(NamedTuple):
    """What follows from settings that fit each other, and the files that they name."""

    identity: Identity
    security: Security | None
    protection: Protection


def checked(settings: Settings) -> Checked:
    """Check settings against each other, and read the files that they name. Raises ``SettingsError``."""
    try:
        TokenKey(settings.delegation_token_secret_key_file)
        return Checked(identity_of(settings), security_of(settings), protection_of(settings))
    except ValueError as error:
        raise SettingsError(str(error)) from error


def run(settings: Settings) -> None:
    """Run a gateway until SIGTERM. Raises ``SettingsError``; other errors end the process (``ending.told``)."""
    parts = checked(settings)
    configure(settings.log_format, settings.log_level)
    structlog.contextvars.bind_contextvars(gateway=settings.node_id)
    collect_rarely()
    with told(
        superseded=(SupersededError,),
        refused=(StorageError, UnknownDecisionError, CodecError, ShadowError),
        unreachable=(BusError, OSError, TimeoutError),
    ):
        asyncio.run(_serve(settings, *parts))


async def _serve(settings: Settings, identity: Identity, security: Security | None, protection: Protection) -> None:
    gateway: Gateway | None = None
    phases = Phases()

    def measures() -> GatewayMeasures:
        return gateway.measures() if gateway else GatewayMeasures(gateway=identity.gateway, phase=phases.told)

    async with watched(measures, SERIES, settings, protection):
        phases.begin("reaching the bus")
        bus = await opened(settings.bus, settings.bus_unreachable_max_ms)
        gateway = Gateway(identity, settings, bus, security, phases)
        stopped_by_signals(gateway.stop)
        await gateway.run()
