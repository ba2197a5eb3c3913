"""Open a bus by the name that settings and commands give it."""

from pathlib import Path

from isrflow.bus.embedded import EmbeddedBus
from isrflow.bus.interface import Bus, BusError, NoBusError
from isrflow.bus.kafka.address import SCHEME
from isrflow.conf.settings import SQLITE

KAFKA = SCHEME


def open_bus(url: str, *, create: bool = True) -> Bus:
    """Open ``sqlite:PATH``, a bare path, or ``kafka://host:port[,host:port][/prefix]``.

    A bus that is not there is made, or with ``create`` false refused. Raises ``BusError``.
    """
    if url.startswith(KAFKA):
        # A client in C that takes a while to load: no other bus pays for it.
        from isrflow.bus.kafka.bus import KafkaBus

        try:
            return KafkaBus(url, create=create)
        except ValueError as error:
            raise BusError(str(error)) from error
    path = Path(url.removeprefix(SQLITE))
    if not create and not path.exists():
        raise NoBusError(
            f"there is no bus at {path}: start the engine with 'isrflow run', or name its bus with --bus PATH."
        )
    return EmbeddedBus(path)
