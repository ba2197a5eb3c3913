"""Hand brokers in ZooKeeper mode back to their own controller."""

from pathlib import Path

import click

from brokers.launch.service import ServiceError
from bus.interface import BusError
from cli.closed_output import check_open
from cli.cluster.engine import decides
from cli.cluster.folder import dir_option, held_cluster
from cli.cluster.led_cluster import LedCluster
from cli.errors import Refused, Unreachable, WrongUse


@click.command("hand-back")
@dir_option
def command(folder: Path) -> None:
    """Let brokers in ZooKeeper mode go on without the engine: one of them becomes their controller.

    The brokers keep running. The engine and the gateways are stopped, and no longer start with the cluster.
    By then ZooKeeper holds every decision, so nothing is lost. 'isrflow cluster adopt' is the way back.

    \b
    Examples:
      isrflow cluster hand-back
      isrflow cluster hand-back --dir data/zookeeper-cluster
    """
    check_open()
    with held_cluster(folder) as (_, led):
        _check_and_hand_back(folder, led)


def _check_and_hand_back(folder: Path, led: LedCluster | None) -> None:
    if led is None or led.zookeeper is None:
        raise WrongUse(f"{folder} has no brokers in ZooKeeper mode that an engine leads")
    if led.handed_back:
        raise Refused("the brokers have a controller of their own already")
    if led.zookeeper.state != "running":
        raise Unreachable("zookeeper does not run: start the cluster with 'isrflow cluster up'")
    try:
        was_ours = _hand_back(led)
    except (ServiceError, BusError) as error:
        raise Unreachable(str(error)) from error
    led.changed(handed_back=True, adopts=False)
    done = "handed back" if was_ours else "the brokers had a controller of their own already"
    click.echo(f"{done}; {led.bus} is kept, and not used any more")


def _hand_back(led: LedCluster) -> bool:
    # Loads the client of ZooKeeper, which the other commands do not need.
    from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError
    from brokers.gateways.zk.moves.hand_back import HandBackError, hand_back
    from brokers.gateways.zk.settings import settings_of

    assert led.zookeeper is not None
    bus = led.bus.open()
    try:
        if led.engine.state == "stopped" and decides(bus):
            raise Refused(f"an engine decides on {led.bus}: stop it first")
        for service in (led.engine, *led.gateways.values()):
            service.stop()
        # All gateways have the same settings.
        settings = settings_of(dict(next(iter(led.gateways.values())).settings))
        return hand_back(led.zookeeper.address, led.kafka.cluster_id, settings, bus, list(led.gateways))
    except (HandBackError, ZookeeperError) as error:
        raise Refused(str(error)) from error
    finally:
        bus.close()
