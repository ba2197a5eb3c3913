"""Run the engine."""

import click

from isrflow.cli.options import with_settings
from isrflow.conf.settings import Settings


@click.command("run")
@with_settings
def command(settings: Settings) -> None:
    """Run the engine until it is stopped with SIGTERM or Ctrl-C, or another job takes over.

    It claims the next controller epoch, so whichever job was started last decides, and an older one
    stops by itself with exit code 1.

    \b
    Examples:
      isrflow run
      isrflow run --conf conf/profiles/laptop.toml --set metrics.port=0
    """
    # Spark takes seconds to import: no other command pays for it.
    from isrflow.streaming.job import run

    run(settings)
