"""Open a bus by the URL that settings and commands give it."""

from typing import Protocol

from bus import embedded
from bus.interface import Bus, OpenOptions
from bus.kafka import by_url
from isrflow.bus_url import EMBEDDED, KAFKA, BusKind, check_url, kind_of
from isrflow.sqlite.lock_wait import LOCK_TIMEOUT_S


class Kind(Protocol):
    """One kind of bus: a module with these functions."""

    def open_url(self, url: str, options: OpenOptions) -> Bus:
        """Open the bus at ``url``. Raises ``BusError``."""
        ...

    def files_name(self, url: str) -> str:
        """Return the common prefix of all files beside the bus. It is the same for all spellings of one bus's URL.

        Raises ``ValueError`` if the URL is malformed.
        """
        ...


_MODULES: dict[BusKind, Kind] = {
    EMBEDDED: embedded,
    KAFKA: by_url,
}


def open_bus(
    url: str,
    *,
    create: bool = True,
    read_only: bool = False,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    replication_factor: int = 0,
) -> Bus:
    """Open ``sqlite:PATH``, a bare path, or ``kafka://host:port[,host:port][/prefix]``. Raises ``BusError``.

    A missing bus is made, unless ``create`` is false or the bus is ``read_only``. A ``read_only`` bus is not changed in
    any way. If another process has locked the file, wait up to ``lock_timeout_s``. New topics get
    ``replication_factor`` replicas.
    """
    check_url(url)
    options = OpenOptions(create and not read_only, read_only, lock_timeout_s, replication_factor)
    return _MODULES[kind_of(url)].open_url(url, options)


def files_name(url: str) -> str:
    """Return the common prefix of all files beside a bus (``Kind.files_name``)."""
    return _MODULES[kind_of(url)].files_name(url)
