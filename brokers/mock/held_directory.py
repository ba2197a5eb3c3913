"""A mock broker's directory: held by one process at a time, and only for the broker whose logs are in it.

Two processes would append to the same logs. A broker would take another broker's logs for strays, and set them aside.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brokers.files import locked
from conf.private_dir import private_dir
from conf.whole_file import replace

LOCK = ".lock"
ADDRESS_FILE = "broker.json"


class DirectoryRefusedError(Exception):
    """The directory is in use, or belongs to another broker."""


class _Address(msgspec.Struct):
    broker: int
    host: str
    port: int


@contextlib.contextmanager
def held(directory: Path, broker: int) -> Iterator[None]:
    """Hold the directory for ``broker``; make it if it is missing. Raises ``DirectoryRefusedError``."""
    private_dir(directory)
    try:
        lock = locked(directory / LOCK)
    except BlockingIOError as error:
        raise DirectoryRefusedError(f"{directory} is in use by another broker") from error
    with lock:
        last = _last_address(directory)
        if last is not None and last.broker != broker:
            raise DirectoryRefusedError(f"{directory} holds the logs of broker {last.broker}, not of broker {broker}")
        yield


def note_address(directory: Path, broker: int, host: str, port: int) -> None:
    """Note where ``broker`` listens, and that the directory belongs to it."""
    replace(directory / ADDRESS_FILE, msgspec.json.encode(_Address(broker, host, port)) + b"\n")


def last_port(directory: Path) -> int | None:
    """Return the port at which the broker last listened; None if it is unknown."""
    last = _last_address(directory)
    return None if last is None else last.port


def _last_address(directory: Path) -> _Address | None:
    try:
        return msgspec.json.decode((directory / ADDRESS_FILE).read_bytes(), type=_Address)
    except (OSError, msgspec.MsgspecError):
        return None
