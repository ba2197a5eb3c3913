"""Serve the live page of a shadow's bus."""

import os
import signal
import threading

import click

from bus.image import read_clusters
from bus.interface import Bus
from cli.closed_output import print_nowhere
from cli.committed import without_state
from cli.errors import Unreachable, WrongUse
from cli.options import existing_bus, name_client_config
from conf.loader import load
from conf.settings import Settings


@click.command("serve")
@click.argument("bus", metavar="BUS")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65_535),
    show_default=True,
    help="The port on loopback. 0 takes any free port.",
)
def command(bus: str, port: int) -> None:
    """Serve a page of what was observed: brokers, time line, partitions at risk, decisions, and the past.

    BUS is what 'isrflow shadow read' made, or one on which an engine keeps what 'isrflow shadow run' observes. It is
    only read, and the page follows it. It needs no engine of its own, and runs until SIGTERM or Ctrl-C.

    \b
    Examples:
      isrflow shadow serve incident.db
      isrflow shadow serve incident.db --port 8080
    """
    settings = load(None, (), bus=bus, environment=os.environ, cross_check=False)
    name_client_config(settings.kafka_client_config)
    with existing_bus(settings) as opened:
        _check_shadow(opened, settings)
        _serve(opened, settings, port)


def _check_shadow(bus: Bus, settings: Settings) -> None:
    clusters = read_clusters(bus.image())
    if not clusters:
        raise without_state(settings.bus_name)
    if clusters[0].shadow is None:
        raise WrongUse(f"bus {settings.bus_name} is not the shadow of a cluster: make one with 'isrflow shadow read'")


def _serve(bus: Bus, settings: Settings, port: int) -> None:
    # Loading it takes long, and 'isrflow --help' imports this module.
    from sinks.web.observed_site import HOST, ObservedSite
    from streaming.past_process import PastProcess
    from web.server import MetricsError

    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    site = ObservedSite(bus, PastProcess(settings.bus))
    try:
        found = site.serve(port)
        click.echo(f"http://{HOST}:{found}/")
        print_nowhere()
        stopping.wait()
    except MetricsError as error:
        raise Unreachable(f"--port {port}: {error.why}; name another one, or 0 for any free port") from error
    finally:
        site.close()
