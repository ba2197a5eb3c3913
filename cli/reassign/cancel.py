"""Move the partitions of a plan back."""

from pathlib import Path

import click

from cli.admin_requests import Ask, asks, check_all, perform
from cli.committed import committed
from cli.kafka_files import read_plan
from cli.output import show_json
from cli.reassign.plan_option import check_there, partition_of, plan_option


@click.command("cancel")
@plan_option
@asks
def command(ask: Ask, plan: Path) -> None:
    """Cancel those moves of a plan that are under way. Complete moves stay.

    If the plan names a partition that is not there, or the rules would refuse any of it, nothing is cancelled.

    \b
    Examples:
      isrflow reassign cancel --reassignment-json-file plan.json --dry-run
      isrflow reassign cancel --reassignment-json-file plan.json
    """
    found = committed(ask.settings)
    moves = read_plan(plan)
    check_there(found, moves)
    moving = [move for move in moves if (held := partition_of(found, move)) is not None and held.is_reassigning]
    if not moving:
        if ask.form == "json":
            show_json([])
        else:
            click.echo("None of these partitions is being reassigned.")
        return
    requests = [
        {"kind": "alter_reassignment", "topic": m.topic, "partition": m.partition, "replicas": None} for m in moving
    ]
    check_all(ask, requests)
    perform(ask, requests, lambda answer: f"Cancelled the reassignment of {answer.topic}-{answer.partition}.")
