"""Make a plan that spreads topics over brokers."""

from pathlib import Path

import click
import msgspec

from cli.brokers.rows import broker_of
from cli.committed import Committed, committed
from cli.errors import Refused
from cli.kafka_files import plan_of, read_topics
from cli.options import with_settings
from cli.output import format_option, show_json
from cli.parameters import file_option
from conf.counted import counted
from conf.settings import Settings
from controller_logic.placement import place, start_of


def _brokers(context: click.Context, parameter: click.Parameter, text: str) -> list[int]:
    try:
        brokers = [int(one) for one in text.split(",")]
    except ValueError:
        raise click.BadParameter("expected broker ids such as 1,2,3") from None
    if len(set(brokers)) != len(brokers):
        raise click.BadParameter("a broker is named twice")
    return brokers


@click.command("generate")
@file_option(
    "--topics-to-move-json-file",
    "path",
    required=True,
    help='The topics in Kafka\'s form: {"version": 1, "topics": [{"topic": "orders"}]}.',
)
@click.option("--broker-list", "brokers", required=True, callback=_brokers, metavar="IDS", help="For example 1,2,3.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore the brokers' racks.")
@format_option
@with_settings
def command(settings: Settings, path: Path, brokers: list[int], disable_rack_aware: bool, form: str) -> None:
    """Print the present assignment of topics, and a plan that spreads them over brokers.

    Nothing is changed. Keep the present assignment, because it is the plan that moves everything back.

    \b
    Examples:
      isrflow reassign generate --topics-to-move-json-file topics.json --broker-list 1,2,3
      isrflow reassign generate --topics-to-move-json-file topics.json --broker-list 1,2,3 --format json
    """
    found = committed(settings)
    names = read_topics(path)
    racks = {number: None if disable_rack_aware else broker_of(found, number).rack for number in brokers}
    current = {
        (name, partition.partition): partition.replicas for name in names for partition in found.topic(name).partitions
    }
    proposed: dict[tuple[str, int], tuple[int, ...]] = {}
    for name in names:
        proposed |= _placed(found, name, racks)
    if form == "json":
        show_json({"current": plan_of(current), "proposed": plan_of(proposed)})
        return
    click.echo("Current partition replica assignment")
    click.echo(msgspec.json.encode(plan_of(current)))
    click.echo("\nProposed partition reassignment configuration")
    click.echo(msgspec.json.encode(plan_of(proposed)))


def _placed(found: Committed, name: str, racks: dict[int, str | None]) -> dict[tuple[str, int], tuple[int, ...]]:
    topic = found.topic(name)
    factor = len(topic.partitions[0].replicas)
    if factor > len(racks):
        raise Refused(f"topic {name} has {factor} replicas, and the list has only {counted(len(racks), 'broker')}.")
    if len({rack is None for rack in racks.values()}) > 1:
        raise Refused("not all of the brokers have a rack; use --disable-rack-aware to ignore racks.")
    placed = place(racks, len(topic.partitions), factor, start_of(topic.topic_id))
    return {(name, number): replicas for number, replicas in enumerate(placed)}
