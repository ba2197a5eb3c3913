"""Unregister a broker."""

import click

from cli.admin_requests import Ask, asks, perform
from cli.committed import committed
from cli.errors import Refused


@click.command("unregister")
@click.argument("broker", type=int, metavar="ID")
@click.option(
    "--force", is_flag=True, help="Also unregister a broker that serves. It is fenced, and must register again."
)
@asks
def command(ask: Ask, broker: int, force: bool) -> None:
    """Remove a broker that will not come back.

    Its replicas stay assigned to it, so move them first with 'isrflow reassign'. A broker that serves is refused.

    \b
    Examples:
      isrflow brokers unregister 4 --dry-run
      isrflow brokers unregister 4
    """
    held = committed(ask.settings).cluster.brokers.get(broker)
    if held is not None and held.is_live and not force:
        raise Refused(f"broker {broker} is {held.state.name}: stop it first, or use --force.")
    request = {"kind": "broker_unregister", "broker": broker}
    perform(ask, [request], lambda answer: f"Broker {broker} is unregistered.")
