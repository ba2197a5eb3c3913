"""The process of a gateway to brokers in ZooKeeper mode."""

import asyncio
from typing import NamedTuple

import structlog

from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.gateways.shared.starting import opened
from brokers.gateways.shared.watched import watched
from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError
from brokers.gateways.zk.gateway import Gateway
from brokers.gateways.zk.metrics import SERIES
from brokers.gateways.zk.moves.adoption import AdoptionError, adopt
from brokers.gateways.zk.settings import Identity, Settings, identity_of
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
    protection: Protection


def checked(settings: Settings) -> Checked:
    """Check settings against each other, and read the files that they name. Raises ``SettingsError``."""
    try:
        return Checked(identity_of(settings), protection_of(settings))
    except ValueError as error:
        raise SettingsError(str(error)) from error


def run(settings: Settings, *, adopting: bool = False) -> None:
    """Run a gateway until SIGTERM. With ``adopting`` first take over the brokers from their own controller.

    Raises ``SettingsError``; other errors end the process (``ending.told``).
    """
    parts = checked(settings)
    configure(settings.log_format, settings.log_level)
    structlog.contextvars.bind_contextvars(gateway=settings.node_id)
    collect_rarely()
    with told(
        refused=(UnknownDecisionError, CodecError, ShadowError),
        unreachable=(BusError, OSError, TimeoutError, ZookeeperError, AdoptionError),
    ):
        asyncio.run(_serve(settings, *parts, adopting=adopting))


async def _serve(settings: Settings, identity: Identity, protection: Protection, *, adopting: bool) -> None:
    gateway: Gateway | None = None
    phases = Phases()

    def measures() -> GatewayMeasures:
        return gateway.measures() if gateway else GatewayMeasures(gateway=identity.gateway, phase=phases.told)

    async with watched(measures, SERIES, settings, protection):
        phases.begin("reaching the bus")
        bus = await opened(settings.bus, settings.bus_unreachable_max_ms)
        if adopting:
            phases.begin("taking over the brokers from their own controller")
            await asyncio.to_thread(adopt, identity, settings, bus)
        gateway = Gateway(identity, settings, bus, phases)
        stopped_by_signals(gateway.stop)
        await gateway.run()
