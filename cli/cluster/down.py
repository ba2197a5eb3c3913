"""Stop a cluster."""

from pathlib import Path

import click

from brokers.launch.service import ServiceError
from cli.cluster.folder import dir_option, open_cluster
from cli.errors import Refused, Unreachable


@click.command("down")
@click.option("--delete", is_flag=True, help="Remove the cluster's data and logs too, and the bus that 'up' made.")
@dir_option
def down(delete: bool, folder: Path) -> None:
    """Stop brokers, gateways and engine in order; what does not stop in a minute is killed.

    An engine that 'isrflow cluster up' found running goes on.

    \b
    Examples:
      isrflow cluster down
      isrflow cluster down --delete
    """
    kafka, led = open_cluster(folder)
    try:
        killed = led.down() if led else [kafka.nodes[number].name for number in kafka.down()]
        if delete:
            (led or kafka).delete()
            if kafka.folder.exists():
                click.echo(f"{kafka.folder} stays: it holds more than the cluster")
    except ServiceError as error:
        raise Unreachable(str(error)) from error
    if killed:
        raise Refused(f"did not stop by themselves, and were killed: {', '.join(killed)}")
