"""Where a bus on Kafka is: ``kafka://host:port[,host:port][/prefix]``."""

import re
from typing import NamedTuple

SCHEME = "kafka://"
DEFAULT_PREFIX = "isrflow"
_SERVER = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
PATTERN = rf"{SCHEME}{_SERVER}(?:,{_SERVER})*(?:/[A-Za-z0-9._-]{{1,200}})?"


class Address(NamedTuple):
    """Hold the servers to begin with, as Kafka's clients take them, and what the topics' names begin with.

    ``events`` is the one ordered log of control events; ``offsets`` has the ``log_end_offset`` events,
    keyed by replica; ``decisions`` is the retained log, ``state`` the latest pages of it, compacted;
    ``controller`` says who has claimed, and how far it has decided.
    """

    servers: str
    prefix: str

    @property
    def events(self) -> str:
        return f"{self.prefix}.events"

    @property
    def offsets(self) -> str:
        return f"{self.prefix}.offsets"

    @property
    def decisions(self) -> str:
        return f"{self.prefix}.decisions"

    @property
    def state(self) -> str:
        return f"{self.prefix}.state"

    @property
    def controller(self) -> str:
        return f"{self.prefix}.controller"

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.prefix}"


def parse(url: str) -> Address:
    """Read a bus's URL; raises ``ValueError`` where it is none."""
    if not re.fullmatch(PATTERN, url):
        raise ValueError(f"{url!r} is no bus on Kafka: expected kafka://host:port[,host:port][/prefix]")
    servers, _, prefix = url.removeprefix(SCHEME).partition("/")
    return Address(servers, prefix or DEFAULT_PREFIX)
