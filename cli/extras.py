"""The extra that an installation lacks, named in one line."""

import click

from cli.errors import Unreachable

_KAFKA = ("confluent_kafka", "kafka")
_ZOOKEEPER = ("kazoo",)
_ENGINE = (
    "cryptography",
    "google",
    "pandas",
    "prometheus_client",
    "psutil",
    "py4j",
    "pyarrow",
    "pyspark",
    "starlette",
    "uvicorn",
)


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return the extra that brings the missing module; None if no extra does, so that the error is a defect."""
    name = (error.name or "").partition(".")[0]
    if name in _KAFKA:
        return "isrflow[kafka]"
    if name in _ZOOKEEPER:
        return "isrflow[zookeeper]"
    return "isrflow[engine]" if name in _ENGINE else None


def not_installed(error: ModuleNotFoundError, extra: str) -> Unreachable:
    """Make the error that names the missing module and the way to get it."""
    return Unreachable(f"{error.name} is not installed: pip install '{extra}'.")


class Uninstalled(click.Command):
    """A command whose modules are not installed. It says what is missing."""

    def __init__(self, name: str, error: ModuleNotFoundError, extra: str) -> None:
        super().__init__(
            name,
            help=f"Not installed: needs {extra}.",
            context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        )
        self._unreachable = not_installed(error, extra)

    def invoke(self, ctx: click.Context) -> None:
        raise self._unreachable
