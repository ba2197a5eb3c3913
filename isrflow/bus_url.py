"""Whether a bus's URL is one."""

from isrflow.contract import SQLITE
from isrflow.errors import BusError
from isrflow.kafka.address import SCHEME as KAFKA
from isrflow.kafka.address import parse
from isrflow.masking import masked_value


def check_url(url: str) -> None:
    """Raise ``BusError`` if a URL is malformed, or of nothing that has a bus. It would be taken for a file's path."""
    if url.startswith(KAFKA):
        try:
            parse(url)
        except ValueError as error:
            raise BusError(str(error)) from error
    elif "://" in url and not url.startswith(SQLITE):
        expected = "expected a path, sqlite:PATH or kafka://host:port[,host:port][/prefix]"
        raise BusError(f"{masked_value(url)!r} is not a bus: {expected}")
