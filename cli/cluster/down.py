"""Stop a cluster."""

from pathlib import Path

import click

from brokers.launch.service import ServiceError
from cli.cluster.folder import dir_option, held_cluster
from cli.errors import Refused, Unreachable


@click.command("down")
@click.option("--delete", is_flag=True, help="Also remove the cluster's data and logs, and the bus if 'up' created it.")
@dir_option
def command(delete: bool, folder: Path) -> None:
    """Stop brokers, gateways and engine, in this order. Kill a process that does not stop within a minute.

    An engine that was already running before 'isrflow cluster up' keeps running.

    \b
    Examples:
      isrflow cluster down
      isrflow cluster down --delete
    """
    with held_cluster(folder) as (kafka, led):
        services = led.services if led else [*kafka.nodes.values()]
        running = [service.name for service in services if service.state != "stopped"]
        try:
            killed = led.down() if led else [kafka.nodes[number].name for number in kafka.down()]
            stopped = [name for name in running if name not in killed]
            click.echo(f"stopped: {', '.join(stopped)}" if stopped or killed else "nothing was running")
            if delete:
                (led or kafka).delete()
                if kafka.folder.exists():
                    click.echo(f"{kafka.folder} is kept, because it holds other files")
        except ServiceError as error:
            raise Unreachable(str(error)) from error
    if killed:
        raise Refused(f"killed, because they did not stop in time: {', '.join(killed)}")
