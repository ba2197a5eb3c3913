"""The command line: one small file per command, imported only when it is used."""

import sys

import click

from bus.interface import BusError, FencedError
from cli.errors import Interrupted, Refused, Unreachable, WrongUse
from cli.extras import missing_extra, not_installed
from cli.lazy_group import LazyGroup
from conf.jars import JarsError
from conf.java import JavaError
from conf.loader import SettingsError
from state.codec import CodecError

COMMANDS = (
    *("run", "publish", "topics", "partitions", "brokers", "reassign", "elect", "health", "top", "state"),
    *("events", "decisions", "describe", "replay", "whatif", "reshard", "schema", "demo", "doctor", "cluster"),
)


class _Commands(LazyGroup):
    """All commands. An expected error is reported in one line, with its exit code."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except SettingsError as error:
            raise WrongUse(str(error)) from error
        except FencedError as error:
            raise Refused(str(error)) from error
        except (BusError, CodecError, JarsError, JavaError) as error:
            raise Unreachable(str(error)) from error
        except ModuleNotFoundError as error:
            extra = missing_extra(error)
            if extra is None:
                raise
            raise not_installed(error, extra) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unreachable(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error


@click.group(
    cls=_Commands,
    package="cli",
    names=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="isrflow", prog_name="isrflow")
def command() -> None:
    """Decide which brokers lead and which replicas are in sync: Kafka's controller as a Spark Structured Streaming job.

    Exit codes: 0 done, 1 the cluster refused, 2 wrong use, 3 unreachable or stale, 4 superseded by a newer job,
    130 stopped by Ctrl-C.

    \b
    Examples:
      isrflow demo
      isrflow describe --help
    """


def main() -> None:
    """Run the command line."""
    try:
        command(prog_name="isrflow")
    except BrokenPipeError:
        # The reader of our output has closed it. Python would complain again when it flushes at exit.
        sys.stderr.close()
        sys.exit(0)
