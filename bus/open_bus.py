"""Open a bus by the URL that settings and commands give it."""

import hashlib
import os
import re
from pathlib import Path

from bus.embedded import EmbeddedBus
from bus.interface import Bus
from conf.settings import DEFAULT_BUS
from isrflow.bus_url import KAFKA, check_url, kind_of
from isrflow.contract import SQLITE
from isrflow.kafka.address import parse
from isrflow.sqlite.bus_file import Access
from isrflow.sqlite.lock_wait import LOCK_TIMEOUT_S

_NAME_MAX = 100
_DIGEST_MAX = 12


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
    if kind_of(url) is KAFKA:
        # Kafka's client takes a while to load.
        from bus.kafka.bus import KafkaBus

        return KafkaBus(url, create=create and not read_only, replication_factor=replication_factor)
    access = Access.READ if read_only else Access.MAKE if create else Access.WRITE
    return EmbeddedBus(url.removeprefix(SQLITE), access, lock_timeout_s=lock_timeout_s)


def files_name(url: str) -> str:
    """Return the common prefix of all files beside a bus. It is the same for all spellings of one bus's URL.

    For a bus on Kafka it is a path beside the default bus. Raises ``ValueError`` if the URL is malformed.
    """
    if kind_of(url) is not KAFKA:
        return os.path.realpath(url.removeprefix(SQLITE))
    servers, prefix = parse(url)
    named = f"{','.join(sorted(servers.split(',')))}/{prefix}"
    # Two addresses may look the same after the replacement, so the name ends with a digest.
    digest = hashlib.sha256(named.encode()).hexdigest()[:_DIGEST_MAX]
    folder = Path(DEFAULT_BUS.removeprefix(SQLITE)).parent
    return str(folder / f"kafka-{re.sub(r'[^A-Za-z0-9._-]', '-', named)[:_NAME_MAX]}-{digest}")
