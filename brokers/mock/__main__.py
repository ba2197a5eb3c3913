"""Start one mock broker: ``python -m brokers.mock --broker 1 --bus PATH --dir DIR``."""

import asyncio
import contextlib
import resource
from pathlib import Path

import click
import structlog

from brokers.mock.broker import Broker, DirectoryLostError
from brokers.mock.control.lifecycle import ReplacedError
from brokers.mock.held_directory import DirectoryRefusedError, held
from brokers.mock.metrics import SERIES
from brokers.mock.settings import Identity, Settings, settings_of
from brokers.process.ending import stopped_by_signals, told
from brokers.process.given_settings import bus_option, metrics_protection, parsed
from brokers.process.metrics import OwnMetrics, served
from bus.interface import Bus, BusError
from bus.open_bus import open_bus
from conf.logs import configure
from conf.security.exposure import Protection
from state.stored.codec import CodecError


async def _serve(identity: Identity, settings: Settings, protection: Protection, bus: Bus) -> None:
    broker = Broker(identity, settings, bus)
    stopped_by_signals(broker.stop)
    with served(OwnMetrics(SERIES, broker.measures), settings.metrics_host, settings.metrics_port, protection):
        await broker.run()


def _raise_open_files_limit() -> None:
    """Let this process open as many files as the system allows, as a JVM does. Each segment of each log is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # If the system refuses, the limit stays as it was.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@click.command()
@click.option("--broker", required=True, type=click.IntRange(0, 2**31 - 1), help="The broker's id.")
@bus_option
@click.option("--dir", "directory", required=True, type=click.Path(path_type=Path), help="Where its logs live.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on and to be found at.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65_535),
    help="The port to listen on. 0: its last one, or a free one.",
)
@click.option("--rack", default=None, help="The broker's rack.")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="A setting, under Kafka's name.")
def main(
    broker: int, bus: str, directory: Path, host: str, port: int, rack: str | None, given: tuple[str, ...]
) -> None:
    """Run a mock broker until SIGTERM, which stops it cleanly, or SIGKILL, from which it recovers."""
    settings = parsed(given, settings_of)
    protection = metrics_protection(settings)
    configure("auto")
    _raise_open_files_limit()
    structlog.contextvars.bind_contextvars(broker=broker)
    identity = Identity(broker=broker, bus=bus, directory=directory, host=host, port=port, rack=rack)
    refused = (ReplacedError, DirectoryRefusedError, DirectoryLostError, CodecError)
    with told(refused=refused, unreachable=(BusError, OSError, TimeoutError)), held(directory, broker):
        asyncio.run(_serve(identity, settings, protection, open_bus(bus, create=False)))


if __name__ == "__main__":
    main()
