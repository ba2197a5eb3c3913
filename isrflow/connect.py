"""Open a bus by its URL."""

from isrflow.bus_url import check_url
from isrflow.client import Client
from isrflow.contract import SQLITE
from isrflow.errors import BusError
from isrflow.kafka.address import SCHEME as KAFKA


def connect(url: str) -> Client:
    """Open an existing bus: ``sqlite:PATH``, a bare path, or ``kafka://host:port[,host:port][/prefix]``.

    Raises ``NoBusError`` if there is none, because the engine makes it. Raises ``BusError`` if the URL is malformed,
    or if it is a bus on Kafka and Kafka's client is not installed.
    """
    check_url(url)
    if url.startswith(KAFKA):
        # Kafka's client takes a while to load, and only isrflow[kafka] has it.
        try:
            from isrflow.kafka.log import KafkaLog
        except ModuleNotFoundError as error:
            raise BusError(f"{url}: {error.name} is not installed: pip install 'isrflow[kafka]'") from error
        return Client(KafkaLog(url))
    from isrflow.sqlite.log import SqliteLog

    return Client(SqliteLog(url.removeprefix(SQLITE)))
