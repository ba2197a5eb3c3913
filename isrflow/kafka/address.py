"""The address of a bus on Kafka, ``kafka://host:port[,host:port][/prefix]``, and the topics that it names."""

import re
from typing import NamedTuple

from isrflow.masking import masked_value

SCHEME = "kafka://"
DEFAULT_PREFIX = "isrflow"
_SERVER = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
PATTERN = rf"{SCHEME}{_SERVER}(?:,{_SERVER})*(?:/[A-Za-z0-9._-]{{1,200}})?"


class Address(NamedTuple):
    """Where a bus on Kafka is."""

    # The servers that clients connect to first, as Kafka's clients take them.
    servers: str
    # What the names of the topics start with.
    prefix: str

    @property
    def events(self) -> str:
        """The one ordered log of events."""
        return f"{self.prefix}.events"

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
        """The newest claims, and the last decided event (``mark``)."""
        return f"{self.prefix}.controller"

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.prefix}"


def parse(url: str) -> Address:
    """Read a bus's URL. Raises ``ValueError`` if it is malformed."""
    if not re.fullmatch(PATTERN, url):
        raise ValueError(
            f"{masked_value(url)!r} is not a bus on Kafka: expected kafka://host:port[,host:port][/prefix]"
        )
    servers, _, prefix = url.removeprefix(SCHEME).partition("/")
    return Address(servers, prefix or DEFAULT_PREFIX)
