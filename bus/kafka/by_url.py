"""Open a bus on Kafka by its URL, for ``open_bus``."""

import hashlib
import re
from pathlib import Path

from bus.interface import Bus, BusError, OpenOptions
from conf.settings import DEFAULT_BUS
from isrflow.contract import SQLITE
from isrflow.kafka.address import parse

_NAME_MAX = 100
_DIGEST_MAX = 12


def open_url(url: str, options: OpenOptions) -> Bus:
    """Open a bus on Kafka (``open_bus.Kind``)."""
    # Kafka's client takes a while to load, so no other kind of bus loads it.
    from bus.kafka.bus import KafkaBus

    try:
        return KafkaBus(url, create=options.create, replication_factor=options.replication_factor)
    except ValueError as error:
        raise BusError(str(error)) from error


def files_name(url: str) -> str:
    """Return a path beside the default bus, with a name made from the address (``open_bus.Kind``)."""
    servers, prefix = parse(url)
    named = f"{','.join(sorted(servers.split(',')))}/{prefix}"
    # Two addresses may look the same after the replacement, so the name ends with a digest.
    digest = hashlib.sha256(named.encode()).hexdigest()[:_DIGEST_MAX]
    folder = Path(DEFAULT_BUS.removeprefix(SQLITE)).parent
    return str(folder / f"kafka-{re.sub(r'[^A-Za-z0-9._-]', '-', named)[:_NAME_MAX]}-{digest}")
