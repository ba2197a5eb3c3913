"""Fence a broker."""

import click

from cli.admin_requests import Ask, asks, perform
from cli.brokers.rows import broker_of
from cli.committed import committed
from cli.errors import Refused
from cli.output import show_json
from state.broker import BrokerState


@click.command("fence")
@click.argument("broker", type=int, metavar="ID")
@asks
def command(ask: Ask, broker: int) -> None:
    """Fence a broker now: it leads nothing and leaves every ISR, as if its session had ended.

    Use this for a broker that hangs. A broker that still sends heartbeats becomes active again with the next one.
    To keep it away, stop its process, and then unregister it.

    What if the broker dies? --dry-run shows exactly that: every new leader, every partition that would have none, and
    in the last line how many there are. 'isrflow risk' compares the loss of all brokers and racks.

    \b
    Examples:
      isrflow brokers fence 3 --dry-run
      isrflow brokers fence 3
    """
    held = broker_of(committed(ask.settings), broker)
    if held.state is BrokerState.fenced:
        click.echo(f"Broker {broker} is fenced already.", err=ask.form == "json")
        if ask.form == "json":
            # As if there were requests: a list of their answers.
            show_json([])
        return
    if held.state is not BrokerState.active:
        raise Refused(f"broker {broker} is in {held.state.name}: it is fenced when its shutdown ends.")
    # The heartbeat with which a broker itself asks to be fenced. The epoch protects a later process with the same id.
    request = {
        "kind": "broker_heartbeat",
        "broker": broker,
        "broker_epoch": held.broker_epoch,
        "want_fence": True,
        "want_shutdown": False,
    }
    perform(ask, [request], lambda answer: f"Broker {broker} is fenced.")
