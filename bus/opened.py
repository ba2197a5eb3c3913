"""Open a bus by the name that settings and commands give it."""

from bus.bus_file import Access
from bus.embedded import EmbeddedBus
from bus.interface import Bus, BusError
from bus.kafka.address import SCHEME
from bus.locked import LOCK_TIMEOUT_S
from conf.settings import SQLITE

KAFKA = SCHEME


def open_bus(
    url: str,
    *,
    create: bool = True,
    read_only: bool = False,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    replication_factor: int = 0,
) -> Bus:
    """Open ``sqlite:PATH``, a bare path, or ``kafka://host:port[,host:port][/prefix]``.

    A bus that is not there is made, or with ``create`` false refused; one that is opened ``read_only`` is not made
    either, nor changed in any way. A file that another process has locked is waited for; topics that are made get
    ``replication_factor`` replicas. Raises ``BusError``.
    """
    if url.startswith(KAFKA):
        # A client in C that takes a while to load: no other bus pays for it.
        from bus.kafka.bus import KafkaBus

        try:
            return KafkaBus(url, create=create and not read_only, replication_factor=replication_factor)
        except ValueError as error:
            raise BusError(str(error)) from error
    access = Access.READ if read_only else Access.MAKE if create else Access.WRITE
    return EmbeddedBus(url.removeprefix(SQLITE), access, lock_timeout_s=lock_timeout_s)
