"""Begin a plan of reassignments."""

from pathlib import Path

import click
import msgspec

from cli.admin_requests import Ask, asks, check_all, perform
from cli.committed import committed
from cli.errors import Refused
from cli.kafka_files import plan_of, read_plan
from cli.reassign.plan_option import check_there, partition_of, plan_option


@click.command("execute")
@plan_option
@click.option("--additional", is_flag=True, help="Begin even while other moves are under way, or change those.")
@asks
def command(ask: Ask, plan: Path, additional: bool) -> None:
    """Begin to move the partitions of a plan.

    If the rules would refuse any of it, nothing is moved, and every fault is named. Otherwise the command first prints
    the present assignment, because it is the plan that moves everything back. A plan that
    names log directories is for Kafka's own kafka-reassign-partitions, which asks the brokers.

    \b
    Examples:
      isrflow reassign execute --reassignment-json-file plan.json --dry-run
      isrflow reassign execute --reassignment-json-file plan.json
      isrflow reassign execute --reassignment-json-file plan.json --additional --format json
    """
    moves = read_plan(plan)
    found = committed(ask.settings)
    check_there(found, moves)
    if not additional and any(p.is_reassigning for topic in found.topics.values() for p in topic.partitions):
        raise Refused("a reassignment is under way: cancel it, or use --additional to change or add moves.")
    requests = [
        {"kind": "alter_reassignment", "topic": m.topic, "partition": m.partition, "replicas": m.replicas}
        for m in moves
    ]
    check_all(ask, requests)
    present = {
        (move.topic, move.partition): partition.replicas
        for move in moves
        if (partition := partition_of(found, move)) is not None
    }
    if ask.form == "table":
        click.echo("Current partition replica assignment")
        click.echo(msgspec.json.encode(plan_of(present)))
        click.echo("\nSave this to use as the --reassignment-json-file option during rollback")
    perform(ask, requests, lambda answer: f"Started the reassignment of {answer.topic}-{answer.partition}.")
