"""Take brokers in ZooKeeper mode over from their own controller."""

from pathlib import Path

import click

from brokers.launch.kafka.cluster import remove
from brokers.launch.service import ServiceError
from cli.closed_output import check_open
from cli.cluster.bus_place import BusPlace
from cli.cluster.folder import dir_option, held_cluster
from cli.cluster.led_cluster import LedCluster
from cli.errors import Refused, Unreachable, WrongUse
from conf.loader import bus_named


@click.command("adopt")
@click.option("--bus", required=True, metavar="PATH|URL", help="A bus without brokers; made if it is missing.")
@dir_option
def command(bus: str, folder: Path) -> None:
    """Let the engine lead brokers that 'isrflow cluster hand-back' left to a controller of their own.

    The brokers keep running. The engine reads the cluster from ZooKeeper, and goes on from there. For brokers
    that isrflow did not start, run a gateway with --adopt (docs/zookeeper.md).

    \b
    Examples:
      isrflow cluster adopt --bus data/bus-2.db
      isrflow cluster adopt --bus kafka://localhost:9092/second --dir data/zookeeper-cluster
    """
    check_open()
    url = bus_named(bus)
    with held_cluster(folder) as (_, led):
        _adopted(folder, led, url)


def _adopted(folder: Path, led: LedCluster | None, bus: str) -> None:
    if led is None or not led.handed_back:
        raise WrongUse(f"{folder} has no brokers that were handed back")
    place = BusPlace.of(bus)
    is_there = place.exists()
    if is_there and (known := sorted(place.cluster().brokers)):
        raise Refused(f"the bus {place} has brokers already: {', '.join(map(str, known))}; choose another with --bus")
    # The former engine's checkpoint belongs to the former bus.
    remove([led.engine.folder])
    place.open().close()
    try:
        led.changed(bus=place.url, made_bus=not is_there, handed_back=False, adopts=True).up(click.echo)
    except ServiceError as error:
        raise Unreachable(str(error)) from error
    click.echo(f"the engine on {place} leads the brokers")
