"""Move the partitions of a plan back."""

from pathlib import Path

import click

from cli.admin_requests import Ask, asks, check_all, perform
from cli.committed import committed
from cli.kafka_files import read_plan
from cli.output import show_json
from cli.reassign.plan_option import check_there, optional_plan_option, partition_of


@click.command("cancel")
@optional_plan_option
@click.option("--all", "every", is_flag=True, help="Cancel every move that is under way.")
@asks
def command(ask: Ask, plan: Path | None, every: bool) -> None:
    """Cancel those moves of a plan that are under way, or all moves. Complete moves stay.

    If the plan names a partition that is not there, or the rules would refuse any of it, nothing is cancelled.

    \b
    Examples:
      isrflow reassign cancel --reassignment-json-file plan.json --dry-run
      isrflow reassign cancel --reassignment-json-file plan.json
      isrflow reassign cancel --all --dry-run
    """
    found = committed(ask.settings)
    if every == (plan is not None):
        raise click.UsageError("name exactly one of --reassignment-json-file and --all")
    if plan is None:
        moving = [(t.topic, p.partition) for t in found.topics.values() for p in t.partitions if p.is_reassigning]
    else:
        moves = read_plan(plan)
        check_there(found, moves)
        held = ((move, partition_of(found, move)) for move in moves)
        moving = [(move.topic, move.partition) for move, one in held if one is not None and one.is_reassigning]
    if not moving:
        if ask.form == "json":
            show_json([])
        else:
            click.echo(
                "No partition is being reassigned." if every else "None of these partitions is being reassigned."
            )
        return
    requests = [
        {"kind": "alter_reassignment", "topic": topic, "partition": partition, "replicas": None}
        for topic, partition in moving
    ]
    check_all(ask, requests)
    perform(ask, requests, lambda answer: f"Cancelled the reassignment of {answer.topic}-{answer.partition}.")
