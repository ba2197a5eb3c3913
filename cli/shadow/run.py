"""Observe a live cluster."""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

import click

from brokers.process.ending import stopped_by_signals
from brokers.process.metrics import OwnMetrics, served
from brokers.shadow.client import client_of
from brokers.shadow.controller_line import Endpoint, UnfitServerError
from brokers.shadow.fetched_log import LogCutError
from brokers.shadow.metrics import SERIES
from brokers.shadow.quorum import NoControllerError, Quorum, RefusedReaderError
from brokers.shadow.resumed import StateBehindError
from brokers.shadow.running import Shadow
from brokers.shadow.shadow_bus import ForeignBusError
from bus.open_bus import open_bus
from cli.closed_output import print_nowhere
from cli.errors import Refused, Unreachable, WrongUse
from cli.options import with_settings
from conf.garbage import collect_rarely
from conf.logs import configure
from conf.security.tls import TlsError
from conf.settings import Settings
from isrflow.errors import BusError
from isrflow.kafka.client_config import ClientConfig, config_in

METRICS_HOST = "127.0.0.1"
_ENDPOINT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_PORT_MAX = 65_535


def _endpoints(context: click.Context, parameter: click.Parameter, text: str) -> list[tuple[str, int]]:
    found = [_ENDPOINT.fullmatch(one.strip()) for one in text.split(",")]
    places = [(one[1].strip("[]"), int(one[2])) for one in found if one and 0 < int(one[2]) <= _PORT_MAX]
    if len(places) != len(found):
        raise click.BadParameter(f"expected HOST:PORT,..., got {text!r}")
    return places


@click.command("run")
@click.option(
    "--bootstrap",
    required=True,
    callback=_endpoints,
    metavar="HOST:PORT,...",
    help="The listeners of the controllers. Brokers do not serve the metadata log.",
)
@click.option(
    "--command-config",
    type=click.Path(dir_okay=False, exists=True),
    help="Kafka's client properties for TLS and SASL at the controllers.",
)
@click.option("--cluster-id", help="The cluster's id. Default: the controllers tell it to an admin (ALTER).")
@click.option(
    "--controller-log",
    "controller_logs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A controller's log on this machine, which says in words why brokers were fenced. May be repeated.",
)
@click.option(
    "--metrics-port",
    default=-1,
    type=click.IntRange(-1, _PORT_MAX),
    show_default=True,
    help="The port for Prometheus on loopback. 0 takes any free port, -1 serves nothing.",
)
@with_settings
def command(
    bootstrap: list[tuple[str, int]],
    command_config: str | None,
    cluster_id: str | None,
    controller_logs: tuple[Path, ...],
    metrics_port: int,
    settings: Settings,
) -> None:
    """Observe a live cluster, and publish what its controllers do on a bus of its own.

    It reads the metadata log from the active controller, and follows when another one takes over. It goes on where a
    former run stopped. The bus must be new, or the shadow of the same cluster; it is made if there is none. An engine
    on this bus ('isrflow run') decides nothing, but keeps the state and the history.

    The principal needs CLUSTER_ACTION on the cluster, and DESCRIBE to see when brokers last fetched, which makes more
    causes likely. It runs until SIGTERM or Ctrl-C.

    \b
    Examples:
      isrflow shadow run --bootstrap ctl-1:9093,ctl-2:9093,ctl-3:9093 --bus data/shadow.db
      isrflow shadow run --bootstrap ctl-1:9093 --command-config shadow.properties --controller-log controller.log
    """
    try:
        client = client_of(config_in(command_config, "--command-config") if command_config else ClientConfig({}))
    except (BusError, TlsError) as error:
        raise WrongUse(str(error)) from error
    print_nowhere()
    configure(settings.log_format, settings.log_level)
    collect_rarely()
    quorum = Quorum([Endpoint(*place) for place in bootstrap], client)
    try:
        asyncio.run(_observe(quorum, cluster_id, controller_logs, metrics_port, settings))
    except ForeignBusError as error:
        raise WrongUse(f"the bus {settings.bus_name}: {error}") from error
    except UnfitServerError as error:
        raise WrongUse(f"--bootstrap: {error}") from error
    except (RefusedReaderError, LogCutError) as error:
        raise Refused(str(error)) from error
    except (NoControllerError, StateBehindError) as error:
        raise Unreachable(str(error)) from error
    except OSError as error:
        raise Unreachable(f"--metrics-port: {error.strerror or error}") from error


async def _observe(
    quorum: Quorum, cluster_id: str | None, controller_logs: Sequence[Path], metrics_port: int, settings: Settings
) -> None:
    bus = open_bus(settings.bus, replication_factor=settings.kafka_topics_replication_factor)
    with contextlib.closing(bus):
        shadow = Shadow(quorum, bus, cluster_id, controller_logs)
        stopped_by_signals(shadow.stop)
        with served(OwnMetrics(SERIES, shadow.measures), METRICS_HOST, metrics_port):
            await shadow.run()
