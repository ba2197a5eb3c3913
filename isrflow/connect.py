"""Open a bus by its URL."""

from importlib import import_module

from isrflow.bus_url import check_url, kind_of
from isrflow.client import Client, Log
from isrflow.errors import BusError


def connect(url: str) -> Client:
    """Open an existing bus: ``sqlite:PATH``, a bare path, or ``kafka://host:port[,host:port][/prefix]``.

    Raises ``NoBusError`` if there is none, because the engine makes it. Raises ``BusError`` if the URL is malformed,
    or if it is a bus on Kafka and Kafka's client is not installed.
    """
    check_url(url)
    kind = kind_of(url)
    # Kafka's client takes a while to load, and only isrflow[kafka] has it.
    try:
        module = import_module(kind.log)
    except ModuleNotFoundError as error:
        raise BusError(f"{url}: {error.name} is not installed: pip install '{kind.package}'") from error
    log: Log = module.open_log(url)
    return Client(log)
