"""The kinds of bus, by their URLs. ``CONTRIBUTING.md`` says what else a new kind of bus needs."""

from collections.abc import Callable
from typing import NamedTuple

from isrflow.contract import SQLITE
from isrflow.errors import BusError
from isrflow.kafka.address import SCHEME, parse
from isrflow.masking import masked_value


class BusKind(NamedTuple):
    """A kind of bus, as its URLs and the package isrflow know it."""

    # ``Bus.kind``. The engine's module that reads it has this name too.
    name: str
    # What its URLs begin with.
    scheme: str
    # Its URLs, as messages show them.
    form: str
    # Raises ``ValueError`` if a URL is malformed.
    check: Callable[[str], object]
    # The module of its log for users' programs, with a function ``open_log``.
    log: str
    # What to install so that the module can be imported.
    package: str


EMBEDDED = BusKind("embedded", SQLITE, "sqlite:PATH", str, "isrflow.sqlite.log", "isrflow")
KAFKA = BusKind("kafka", SCHEME, "kafka://host:port[,host:port][/prefix]", parse, "isrflow.kafka.log", "isrflow[kafka]")
KINDS = (EMBEDDED, KAFKA)


def kind_of(url: str) -> BusKind:
    """Return the kind of the bus at ``url``. A bare path names an embedded bus."""
    return next((kind for kind in KINDS if url.startswith(kind.scheme)), EMBEDDED)


def check_url(url: str) -> None:
    """Raise ``BusError`` if a URL is malformed, or of nothing that has a bus. It would be taken for a file's path."""
    kind = kind_of(url)
    if "://" in url and not url.startswith(kind.scheme):
        forms = " or ".join(one.form for one in KINDS)
        raise BusError(f"{masked_value(url)!r} is not a bus: expected a path, {forms}")
    try:
        kind.check(url)
    except ValueError as error:
        raise BusError(str(error)) from error
