"""Start one gateway: ``python -m brokers.gateways.zk --gateway 100 --voters 100@H:P --zookeeper H:P --bus URL``."""

import asyncio

import click
import structlog

from brokers.gateways.shared.options import GATEWAY_ID, cluster_id_option
from brokers.gateways.shared.starting import collect_rarely, opened, stopped_by_signals, voters_with
from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError
from brokers.gateways.zk.gateway import Gateway
from brokers.gateways.zk.metrics import SERIES
from brokers.gateways.zk.moves.adoption import AdoptionError, adopt
from brokers.gateways.zk.settings import Identity, Settings, settings_of
from brokers.process.ending import told
from brokers.process.given_settings import bus_option, metrics_protection, parsed
from brokers.process.metrics import OwnMetrics, served
from bus.interface import BusError
from conf.logs import configure
from conf.security.exposure import Protection
from state.stored.codec import CodecError


async def _serve(identity: Identity, settings: Settings, protection: Protection, url: str, *, adopting: bool) -> None:
    bus = await opened(url, settings.bus_unreachable_max_ms)
    if adopting:
        await asyncio.to_thread(adopt, identity, settings, bus)
    gateway = Gateway(identity, settings, bus)
    stopped_by_signals(gateway.stop)
    with served(OwnMetrics(SERIES, gateway.measures), settings.metrics_host, settings.metrics_port, protection):
        await gateway.run()


@click.command()
@click.option("--gateway", required=True, type=GATEWAY_ID, help="Its id, which no broker has.")
@click.option("--voters", required=True, metavar="ID@HOST:PORT,...", help="All gateways of these brokers.")
@click.option("--zookeeper", required=True, metavar="HOST:PORT,...", help="As brokers have it in zookeeper.connect.")
@cluster_id_option("The cluster's id in ZooKeeper, which a new ZooKeeper gets.", required=True)
@bus_option
@click.option("--listen-port", default=None, type=click.IntRange(0, 65_535), help="Its port, if not that of --voters.")
@click.option(
    "--adopt",
    "adopting",
    is_flag=True,
    help="First take over the brokers from their own controller (docs/zookeeper.md).",
)
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="A setting.")
def main(
    gateway: int,
    voters: str,
    zookeeper: str,
    cluster_id: str,
    bus: str,
    listen_port: int | None,
    adopting: bool,
    given: tuple[str, ...],
) -> None:
    """Run a gateway to brokers in ZooKeeper mode until SIGTERM."""
    settings = parsed(given, settings_of)
    protection = metrics_protection(settings)
    listed = voters_with(gateway, voters)
    identity = Identity(
        gateway=gateway, voters=listed, zookeeper=zookeeper, cluster_id=cluster_id, listen_port=listen_port
    )
    configure("auto")
    structlog.contextvars.bind_contextvars(gateway=gateway)
    collect_rarely()
    with told(
        refused=(UnknownDecisionError, CodecError),
        unreachable=(BusError, OSError, TimeoutError, ZookeeperError, AdoptionError),
    ):
        asyncio.run(_serve(identity, settings, protection, bus, adopting=adopting))


if __name__ == "__main__":
    main()
