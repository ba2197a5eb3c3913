"""All commands of the command line."""

from typing import Any

import click

from cli.closed_output import reader_may_leave
from cli.expected_errors import ended_by_ctrl_c, reported
from cli.lazy_group import LazyGroup

COMMANDS = (
    "run",
    "gateway",
    "publish",
    "topics",
    "partitions",
    "brokers",
    "reassign",
    "elect",
    "health",
    "risk",
    "top",
    "state",
    "events",
    "decisions",
    "history",
    "describe",
    "replay",
    "whatif",
    "shadow",
    "reshard",
    "level",
    "schema",
    "config",
    "demo",
    "doctor",
    "cluster",
)


class _Commands(LazyGroup):
    """All commands. An expected error is reported in one line, with its exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        # --help is printed here, for which all commands are imported.
        with ended_by_ctrl_c(), reported(), reader_may_leave():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        with ended_by_ctrl_c(), reported(), reader_may_leave():
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
