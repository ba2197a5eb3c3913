"""The address of a bus on Kafka, ``kafka://host:port[,host:port][/prefix]``, and the topics that it names."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from bus.interface import Bus, BusError, OpenOptions
from conf.masking import masked_value
from conf.settings import DEFAULT_BUS, SQLITE

SCHEME = "kafka://"
DEFAULT_PREFIX = "isrflow"
_SERVER = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
_NAME_MAX = 100
_DIGEST_MAX = 12
PATTERN = rf"{SCHEME}{_SERVER}(?:,{_SERVER})*(?:/[A-Za-z0-9._-]{{1,200}})?"


class Address(NamedTuple):
    """Where a bus on Kafka is."""

    # The servers that clients connect to first, as Kafka's clients take them.
    servers: str
    # What the names of the topics start with.
    prefix: str

    @property
    def events(self) -> str:
        """The one ordered log of control events."""
        return f"{self.prefix}.events"

    @property
    def offsets(self) -> str:
        """The ``log_end_offset`` events, keyed by replica."""
        return f"{self.prefix}.offsets"

    @property
    def decisions(self) -> str:
        """The log of decisions."""
        return f"{self.prefix}.decisions"

    @property
    def state(self) -> str:
        """The newest version of each page of the state, compacted."""
        return f"{self.prefix}.state"

    @property
    def snapshots(self) -> str:
        """Older states (``snapshots``)."""
        return f"{self.prefix}.snapshots"

    @property
    def controller(self) -> str:
        """Who has claimed, and how far decisions go (``mark``)."""
        return f"{self.prefix}.controller"

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.prefix}"


def parse(url: str) -> Address:
    """Read a bus's URL. Raises ``ValueError`` if it is malformed."""
    if not re.fullmatch(PATTERN, url):
        raise ValueError(f"{masked_value(url)!r} is no bus on Kafka: expected kafka://host:port[,host:port][/prefix]")
    servers, _, prefix = url.removeprefix(SCHEME).partition("/")
    return Address(servers, prefix or DEFAULT_PREFIX)


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
