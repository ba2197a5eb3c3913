"""Run the engine."""

import contextlib
from pathlib import Path

import click

from cli.closed_output import print_nowhere
from cli.errors import Superseded, Unreachable
from cli.expected_errors import reported
from cli.options import tell_left_out, with_settings
from conf.foreign_lines import as_json
from conf.loader import left_out
from conf.logs import configure, is_json, tell_end
from conf.settings import Settings
from isrflow.bus_url import EMBEDDED, kind_of
from streaming.stopping import StoppedError, StopSignals

# The directory of the default bus, made at the first start.
DEFAULT_DIRECTORY = Path("data")


@click.command("run")
@click.option("--standby", is_flag=True, help="Start everything, but decide only when no other engine does.")
@click.option("--reshard", "reshards", is_flag=True, help="Lay the state out in the shards and pages of the settings.")
@with_settings
def command(settings: Settings, standby: bool, reshards: bool) -> None:
    """Run the engine.

    It runs until SIGTERM, Ctrl-C, or until a newer job takes over. The engine claims the next controller
    epoch, so the job that started last decides. The previous job stops by itself with exit code 4. A
    supervisor must not restart a job that ended with 4.

    With --standby the engine starts everything but claims nothing while another engine is active. If the active
    engine stops, the standby takes over at once. If it dies, the standby takes over controller.standby.timeout.ms
    after its last sign of life. If several engines wait, only one takes over. A supervisor may always restart an
    engine with --standby.

    An engine whose shards or pages differ from the state's does not start. With --reshard it does, and lays the
    state out as its settings say when it takes over. Together with --standby this changes them while brokers run
    and the other engine decides, until that engine is stopped.

    \b
    Examples:
      isrflow run
      isrflow run --conf conf/profiles/laptop.toml --set metrics.port=0
      isrflow run --standby --set metrics.port=9465
      isrflow run --standby --reshard --set shards=32
    """
    signals = StopSignals()
    signals.obey()
    print_nowhere()
    configure(settings.log_format, settings.log_level)
    # Spark and its Python processes write to the same place as the log.
    lines = as_json(settings.log_level) if is_json(settings.log_format) else contextlib.nullcontext()
    try:
        with lines, reported():
            tell_left_out(left_out)
            _run(settings, signals, standby, reshards)
    except StoppedError:
        # Importing it takes long, and 'isrflow --help' imports this module.
        import structlog

        structlog.get_logger("isrflow.job").info("stopping", controller_epoch=0)
    except click.ClickException as error:
        if settings.log_format != "json":
            raise
        # With log.format=json the last line must be JSON too.
        tell_end(error.format_message(), error.exit_code)
        raise click.exceptions.Exit(error.exit_code) from error


def _check_place(bus: str) -> None:
    """Refuse to make directories other than that of the default bus: a path with a typo would be a new cluster.

    Raises ``Unreachable``, because a supervisor may try again once a disk is there.
    """
    if kind_of(bus) is not EMBEDDED:
        return
    path = Path(bus.removeprefix(EMBEDDED.scheme))
    if path.parent != DEFAULT_DIRECTORY and not path.parent.exists():
        raise Unreachable(f"bus {path}: there is no directory {path.parent}. Make it, or correct the setting bus.")


def _run(settings: Settings, signals: StopSignals, standby: bool, reshards: bool) -> None:
    _check_place(settings.bus)
    # Importing Spark takes seconds, so no other command pays for it.
    from streaming.job_errors import JobError, SupersededError
    from streaming.run import run
    from web.server import MetricsError

    try:
        run(settings, signals, standby=standby, reshards=reshards)
    except SupersededError as error:
        raise Superseded(str(error)) from error
    except (JobError, MetricsError) as error:
        raise Unreachable(str(error)) from error
