"""The command line: one small file per command, imported only when it is used."""

import sys

import click

from cli.expected_errors import reported
from cli.lazy_group import LazyGroup

COMMANDS = (
    *("run", "publish", "topics", "partitions", "brokers", "reassign", "elect", "health", "top", "state"),
    *(
        "events",
        "decisions",
        "history",
        "describe",
        "replay",
        "whatif",
        "reshard",
        "schema",
        "demo",
        "doctor",
        "cluster",
    ),
)


class _Commands(LazyGroup):
    """All commands. An expected error is reported in one line, with its exit code."""

    def invoke(self, ctx: click.Context) -> object:
        with reported():
            return super().invoke(ctx)


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
