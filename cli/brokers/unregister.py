"""Unregister a broker."""

import click

from cli.admin_requests import Ask, asks, perform
from cli.committed import Committed, committed
from cli.duration import duration
from cli.errors import Refused
from conf.counted import counted
from state.broker import Broker
from state.ids import NO_TIME
from state.partition import TopicState

# How many stranded partitions are named.
NAMED_MAX = 10


@click.command("unregister")
@click.argument("broker", type=int, metavar="ID")
@click.option(
    "--force",
    is_flag=True,
    help="Also unregister a broker that serves, or has the last in-sync replica of a partition. If it serves, it is "
    "fenced, and must register again.",
)
@asks
def command(ask: Ask, broker: int, force: bool) -> None:
    """Remove a broker that will not come back.

    Its replicas stay assigned to it, so move them first with 'isrflow reassign'. A broker that serves is refused, and
    so is a broker without which partitions stay offline. A dry run names these partitions. Deletions of topics no
    longer wait for the broker.

    \b
    Examples:
      isrflow brokers unregister 4 --dry-run
      isrflow brokers unregister 4
    """
    found = committed(ask.settings)
    held = found.cluster.brokers.get(broker)
    if held is not None and held.is_live and not force:
        raise Refused(f"broker {broker} is {held.state.name}: stop it first, or use --force. {_session(found, held)}")
    stranded = _stranded(found, broker)
    if stranded:
        told = _told(broker, stranded)
        if not (force or ask.dry_run):
            raise Refused(f"{told} Move or delete them, bring the broker back, or use --force.")
        click.echo(told, err=True)
    request = {"kind": "broker_unregister", "broker": broker}
    perform(ask, [request], lambda answer: f"Broker {broker} is unregistered.")


def _stranded(found: Committed, broker: int) -> list[str]:
    """List the partitions of which no other replica is in sync, or that have no other replica."""
    return [
        f"{topic.topic}-{partition.partition}"
        for topic in found.topics.values()
        if topic.state is TopicState.created
        for partition in topic.partitions
        if (partition.isr or partition.replicas) == (broker,)
    ]


def _told(broker: int, stranded: list[str]) -> str:
    named = ", ".join(stranded[:NAMED_MAX])
    more = f" and {len(stranded) - NAMED_MAX} more" if len(stranded) > NAMED_MAX else ""
    return (
        f"broker {broker} has the last in-sync replica of {counted(len(stranded), 'partition')}: {named}{more}. "
        "Without the broker they have no leader, unless an unclean election loses records."
    )


def _session(found: Committed, held: Broker) -> str:
    """Tell how long unregistering a broker that has already stopped is still refused."""
    timeout = duration(found.cluster.policy.broker_session_timeout_ms)
    until = f"until its session ends, {timeout} after it was last heard"
    ends = f"A broker that has stopped counts as {held.state.name} {until}"
    if held.last_contact_ms == NO_TIME:
        return f"{ends}."
    silent_ms = found.cluster.clock_ms + round(found.age_s * 1000) - held.last_contact_ms
    return f"{ends}; that was {duration(silent_ms)} ago."
