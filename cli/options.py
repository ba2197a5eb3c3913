"""The options that commands share: the source of the settings, and the bus."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from bus.interface import Bus, BusError
from bus.open_bus import open_bus
from cli.errors import Unreachable
from cli.parameters import file_option
from conf.environment import CONF_VARIABLE, variable_of
from conf.layers import is_properties
from conf.loader import load
from conf.settings import Settings

conf_option = file_option(
    "--conf",
    envvar=CONF_VARIABLE,
    help="A TOML file with settings (conf/reference.toml lists all of them), or a controller's server.properties.",
)
set_option = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Override one setting. May be repeated."
)
bus_option = click.option(
    "--bus", metavar="PATH|URL", help="Use this bus instead of the one in the settings. Default: ISRFLOW_BUS."
)


def with_settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --conf, --set and --bus to a command, and pass it the resulting ``settings``.

    An option overrides the environment, and the environment overrides the file.
    """

    @conf_option
    @bus_option
    @set_option
    @functools.wraps(function)
    def wrapped(conf: Path | None, bus: str | None, sets: tuple[str, ...], **rest: Any) -> Any:
        settings = load(conf, sets, bus=bus, environment=os.environ)
        name_client_config(settings.kafka_client_config)
        return function(settings=settings, **rest)

    return wrapped


def tell_left_out(left_out: Callable[[Path], Sequence[str]]) -> None:
    """Log what the process of this command does not read of a ``server.properties`` that --conf names."""
    conf: Path | None = click.get_current_context().params.get("conf")
    if conf is not None and is_properties(conf) and (names := left_out(conf)):
        # Importing it takes long, and 'isrflow --help' imports this module.
        import structlog

        structlog.get_logger("isrflow.settings").info("not read", file=str(conf), settings=names)


def name_client_config(file: str) -> None:
    """Name the file of ``kafka.client.config``, if there is one, where every client of a bus looks for it.

    This process and those that it starts find it there, also the Python processes of Spark.
    """
    if file:
        os.environ[variable_of("kafka.client.config")] = str(Path(file).absolute())


@contextlib.contextmanager
def existing_bus(settings: Settings) -> Iterator[Bus]:
    """Open the bus for reading in the block. A missing bus is an error: it is not created."""
    try:
        bus = open_bus(settings.bus, read_only=True)
    except BusError as error:
        raise Unreachable(str(error)) from error
    with contextlib.closing(bus):
        yield bus
