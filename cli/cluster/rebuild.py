"""Rebuild a gateway's metadata log from the brokers' copies."""

import contextlib
import os
from pathlib import Path

import click

from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.settings import Identity
from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.launch.gateway import GatewayProcess
from bus.interface import BusError
from cli.closed_output import check_open
from cli.cluster.bus_place import BusPlace
from cli.cluster.folder import cluster_id_option, dir_option, open_cluster
from cli.errors import Refused, Unreachable, WrongUse
from cli.options import bus_option
from conf.environment import variable_of
from conf.loader import load


@click.command("rebuild")
@click.option("--gateway", type=click.IntRange(min=0), help="A gateway of the cluster in --dir, for example 100.")
@click.option(
    "--log",
    "metadata_log",
    type=click.Path(path_type=Path),
    help="The metadata.log.dir of a gateway that you started by hand.",
)
@cluster_id_option("With --log: Kafka's cluster id.")
@click.option(
    "--from",
    "copies",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A broker's __cluster_metadata-0; once for each broker. With --gateway, defaults to the cluster's brokers.",
)
@click.option("--without", multiple=True, type=int, metavar="ID", help="A broker that is lost for good.")
@bus_option
@dir_option
def command(
    gateway: int | None,
    metadata_log: Path | None,
    cluster_id: str | None,
    copies: tuple[Path, ...],
    without: tuple[int, ...],
    bus: str | None,
    folder: Path,
) -> None:
    """Rebuild a gateway's metadata log from the brokers' copies.

    The gateway must be stopped. A starting gateway does this by itself if it can. Nothing is guessed: either the
    decisions on the bus lead to the last bytes of the copies, or the copies of all registered brokers are there
    and lead to the engine's state. The previous log is set aside.

    \b
    Examples:
      isrflow cluster rebuild --gateway 100
      isrflow cluster rebuild --gateway 100 --without 3
      isrflow cluster rebuild --log data/gateway-100 --cluster-id ID --bus data/bus.db --from DIR
    """
    check_open()
    # This loads the codec of Kafka's messages, which the other commands do not need.
    from brokers.gateways.kraft.rebuilding.opening import rebuild as rebuilt

    if metadata_log is None:
        identity, place = _of_cluster(folder, gateway, copies)
    else:
        identity, place = _by_hand(metadata_log, cluster_id, bus, copies)
    try:
        with contextlib.closing(place.open(read_only=True)) as with_bus:
            copy = rebuilt(identity, with_bus, frozenset(without))
    except (BusError, OSError) as error:
        raise Unreachable(str(error)) from error
    except (StorageError, UnknownDecisionError) as error:
        raise Refused(str(error)) from error
    click.echo(f"{identity.directory} was rebuilt from {copy}")


def _of_cluster(folder: Path, gateway: int | None, copies: tuple[Path, ...]) -> tuple[Identity, BusPlace]:
    kafka, led = open_cluster(folder)
    if led is None:
        raise WrongUse(f"{folder} has no gateway: use --log for one that you started by hand")
    if gateway not in led.gateways:
        raise WrongUse(f"--gateway must be one of {', '.join(map(str, led.gateways))}")
    found = led.gateways[gateway]
    if not isinstance(found, GatewayProcess):
        raise WrongUse(f"{found.name} keeps no metadata log: brokers in ZooKeeper mode have none")
    if found.state != "stopped":
        raise Refused(f"{found.name} is running: stop it with 'isrflow cluster down'")
    identity = Identity(
        gateway=found.voter.voter,
        voters=(found.voter,),
        cluster_id=kafka.cluster_id,
        directory=found.log_directory,
        copies=copies or found.copies,
    )
    return identity, led.bus


def _by_hand(
    metadata_log: Path, cluster_id: str | None, bus: str | None, copies: tuple[Path, ...]
) -> tuple[Identity, BusPlace]:
    is_named = bus is not None or os.environ.get(variable_of("bus"))
    if not (cluster_id and is_named and copies):
        raise WrongUse("--log needs --cluster-id, --bus and --from")
    identity = Identity(gateway=0, voters=(), cluster_id=cluster_id, directory=metadata_log, copies=copies)
    return identity, BusPlace.of(load(bus=bus, environment=os.environ).bus)
