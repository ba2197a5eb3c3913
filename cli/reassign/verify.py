"""Show which moves of a plan are complete."""

from pathlib import Path

import click

from cli.committed import committed
from cli.errors import Refused
from cli.kafka_files import read_plan
from cli.options import with_settings
from cli.output import format_option, show_json
from cli.reassign.plan_option import plan_option, status_of
from conf.counted import counted
from conf.settings import Settings


@click.command("verify")
@plan_option
@format_option
@with_settings
def command(settings: Settings, plan: Path, form: str) -> None:
    """Show for each partition of a plan whether its move is complete. The exit code is 1 until all are.

    \b
    Examples:
      isrflow reassign verify --reassignment-json-file present.json
      isrflow reassign verify --reassignment-json-file present.json --format json
    """
    moves = read_plan(plan)
    found = committed(settings)
    statuses = [(move, *status_of(found, move)) for move in moves]
    if form == "json":
        show_json([{"topic": m.topic, "partition": m.partition, "status": word} for m, word, _ in statuses])
    else:
        click.echo("Status of partition reassignment:")
        for _, _, text in statuses:
            click.echo(text)
    left = sum(word != "complete" for _, word, _ in statuses)
    if left:
        raise Refused(f"not yet where the plan wants them: {left} of {counted(len(statuses), 'partition')}.")
