"""Run the engine."""

import click

from cli.errors import Superseded, Unreachable
from cli.options import with_settings
from conf.logs import configure
from conf.settings import Settings


@click.command("run")
@click.option("--standby", is_flag=True, help="Wait, ready to decide, until no other engine decides.")
@with_settings
def command(settings: Settings, standby: bool) -> None:
    """Run the engine.

    It runs until SIGTERM, Ctrl-C, or until a newer job takes over. The engine claims the next controller
    epoch, so the job that started last decides. The previous job stops by itself with exit code 4. A
    supervisor must not restart a job that ended with 4.

    With --standby the engine starts everything but claims nothing while another one decides. It takes over at once
    when that one stops, and controller.standby.timeout.ms after its last sign of life when it dies. Of several
    standbys one takes over. An engine that a supervisor starts with --standby may always be restarted.

    \b
    Examples:
      isrflow run
      isrflow run --conf conf/profiles/laptop.toml --set metrics.port=0
      isrflow run --standby --set metrics.port=9465
    """
    # Importing Spark takes seconds, so no other command pays for it.
    from sinks.metrics import MetricsError
    from streaming.job import run
    from streaming.job_errors import JobError, SupersededError

    configure(settings.log_format)
    try:
        run(settings, standby=standby)
    except SupersededError as error:
        raise Superseded(str(error)) from error
    except (JobError, MetricsError) as error:
        raise Unreachable(str(error)) from error
