"""Explain why a partition is as it is."""

import click

from bus.image import read_image
from bus.interface import Bus
from cli.errors import Refused, Unreachable
from cli.moment import at_option, seq_named
from cli.options import existing_bus, with_settings
from cli.output import format_option, show_json, show_lines
from cli.partitions.name import PARTITION, PartitionName
from conf.near_names import addition
from conf.settings import Settings
from history.explanation import CHANGES_MAX, Explanation, explain, json_of, text_of
from history.moment import first_seq_since
from history.reach import BeyondReachError, oldest_seq
from history.state_at import state_at


@click.command("explain")
@click.argument("name", type=PARTITION, metavar="TOPIC-N")
@click.option("--from", "start", metavar="SEQ|TIME", help="Begin with this event, or with those since a time.")
@at_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=CHANGES_MAX,
    show_default=True,
    metavar="N",
    help="Tell the newest N changes.",
)
@format_option
@with_settings
def command(settings: Settings, name: PartitionName, start: str | None, at: str | None, limit: int, form: str) -> None:
    """Tell the events and decisions that made a partition what it is: which event, which rule, which replicas were
    passed over as leader and why, and which requests a fence refused.

    \b
    Examples:
      isrflow partitions explain orders-0
      isrflow partitions explain orders-0 --from 2h --limit 100
      isrflow partitions explain orders-0 --limit 5 --format json
    """
    with existing_bus(settings) as bus:
        first = 0 if start is None else seq_named(bus, "--from", start, first_seq_since)
        explanation = _explained(bus, name, at, limit, first)
    if form == "json":
        show_json(json_of(explanation))
        return
    show_lines(text_of(explanation))


def _explained(bus: Bus, name: PartitionName, at: str | None, limit: int, first: int) -> Explanation:
    decided = bus.decided_seq()
    seq = decided if at is None else seq_named(bus, "--at", at)
    if seq > decided:
        raise Unreachable(f"seq {seq} is not decided yet: decisions go through seq {decided}.")
    explanation = explain(bus, name.topic, name.partition, seq, limit, first)
    if explanation is None:
        oldest = oldest_seq(bus)
        reach = "" if oldest is None else f"; decisions go back to seq {oldest}"
        raise Refused(f"nothing was decided about a partition {name} through seq {seq}{reach}{_near(bus, name.topic)}")
    if explanation.chain.last is None:
        _check_existence(bus, name, None if at is None else seq)
    return explanation


def _near(bus: Bus, topic: str) -> str:
    """Return the end of a sentence about the unknown ``topic``: the nearest name, if there is one."""
    image = bus.image()
    names = {found.topic for found in read_image(image).topics} if image.pages else set()
    return addition(topic, names) or "."


def _check_existence(bus: Bus, name: PartitionName, seq: int | None) -> None:
    """Raise ``Refused`` if the topic has no such partition as of ``seq``, or now if that is None.

    If there is no such topic, but one with a similar name, name that one on standard error.
    """
    try:
        topics = read_image(bus.image()).topics if seq is None else state_at(bus, seq).topics()
    except BeyondReachError:
        # The explanation itself says that the partition may not exist.
        return
    for topic in topics:
        if topic.topic == name.topic:
            name.check(topic)
            return
    if near := addition(name.topic, {topic.topic for topic in topics}):
        # Refused requests about such a topic are explained nevertheless.
        click.echo(f"There is no topic {name.topic!r}{near}", err=True)
