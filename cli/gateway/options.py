"""The options of the commands that run a gateway: the source of its settings."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brokers.gateways.shared.gateway_settings import GatewaySettings, Source
from cli.options import bus_option, name_client_config, set_option, tell_left_out
from cli.parameters import file_option
from conf.environment import CONF_VARIABLE
from conf.logs import configure

gateway_conf_option = file_option(
    "--conf",
    envvar=CONF_VARIABLE,
    help="A TOML file with settings (conf/gateway-reference.toml lists all of them), or a controller's "
    "server.properties.",
)


def with_gateway_settings(source: Source[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --conf, --set and --bus to a command, and pass it the ``settings`` that ``source`` makes of them.

    An option overrides the environment, and the environment overrides the file, as for the engine.
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @gateway_conf_option
        @bus_option
        @set_option
        @functools.wraps(function)
        def wrapped(conf: Path | None, bus: str | None, sets: tuple[str, ...], **rest: Any) -> Any:
            settings: GatewaySettings = source.load(conf, sets, bus=bus, environment=os.environ)
            name_client_config(settings.kafka_client_config)
            configure(settings.log_format, settings.log_level)
            tell_left_out(source.layers.left_out)
            return function(settings=settings, **rest)

        return wrapped

    return decorated
