"""What a bus's URL begins with."""

from isrflow.contract import SQLITE
from isrflow.errors import BusError
from isrflow.kafka.address import SCHEME as KAFKA
from isrflow.masking import masked_value


def check_scheme(url: str) -> None:
    """Raise ``BusError`` if a URL is of nothing that has a bus. Otherwise it would be taken for the path of a file."""
    if "://" in url and not url.startswith((SQLITE, KAFKA)):
        expected = "expected a path, sqlite:PATH or kafka://host:port[,host:port][/prefix]"
        raise BusError(f"{masked_value(url)!r} is not a bus: {expected}")
