"""Start one gateway: ``python -m brokers.gateways.zk --gateway 100 --voters 100@H:P --zookeeper H:P --bus URL``."""

import asyncio
import signal
import sys

import click
import structlog

from brokers.engine.retry import retry
from brokers.gateways.kraft.options import GATEWAY_ID, cluster_id_option
from brokers.gateways.zk.gateway import Gateway
from brokers.gateways.zk.settings import Identity, Settings, settings_of
from brokers.given_settings import parsed
from brokers.voters import voters_of
from bus.interface import Bus, BusError
from bus.open_bus import open_bus
from conf.logs import configure

EXIT_UNREACHABLE = 3

logger = structlog.get_logger()


async def _serve(identity: Identity, settings: Settings, url: str) -> None:
    # A gateway never creates a bus, because nobody would decide on it and its brokers would wait for ever.
    async def opened() -> Bus:
        return open_bus(url, create=False)

    bus = await retry(opened, settings.bus_unreachable_max_ms)
    gateway = Gateway(identity, settings, bus)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, gateway.stop)
    await gateway.run()


@click.command()
@click.option("--gateway", required=True, type=GATEWAY_ID, help="Its id, which no broker has.")
@click.option("--voters", required=True, metavar="ID@HOST:PORT,...", help="All gateways of these brokers.")
@click.option("--zookeeper", required=True, metavar="HOST:PORT,...", help="As brokers have it in zookeeper.connect.")
@cluster_id_option("The cluster's id in ZooKeeper, which a new ZooKeeper gets.", required=True)
@click.option("--bus", required=True, metavar="PATH|URL", help="The bus.")
@click.option("--listen-port", default=None, type=click.IntRange(0, 65_535), help="Its port, if brokers know another.")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="A setting.")
def main(
    gateway: int,
    voters: str,
    zookeeper: str,
    cluster_id: str,
    bus: str,
    listen_port: int | None,
    given: tuple[str, ...],
) -> None:
    """Run a gateway to brokers in ZooKeeper mode until SIGTERM."""
    settings = parsed(given, settings_of)
    try:
        listed = voters_of(voters)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--voters") from error
    if gateway not in [voter.voter for voter in listed]:
        raise click.BadParameter(f"{gateway} is not one of the voters {voters}", param_hint="--gateway")
    identity = Identity(
        gateway=gateway, voters=listed, zookeeper=zookeeper, cluster_id=cluster_id, listen_port=listen_port
    )
    configure("auto")
    structlog.contextvars.bind_contextvars(gateway=gateway)
    try:
        asyncio.run(_serve(identity, settings, bus))
    except* (BusError, OSError, TimeoutError) as group:
        logger.error("stopped", why=repr(group.exceptions[0]))
        sys.exit(EXIT_UNREACHABLE)


if __name__ == "__main__":
    main()
