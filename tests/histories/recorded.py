"""Recorded histories: event logs, each with the decisions that the rules made.

``NAME.events.xz`` has one event a line, whose number is its ``seq``; ``NAME.decisions.xz`` one decision a line.
``EVENTS`` has the digest of each history's events, which are never altered.
"""

import hashlib
import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
DIGEST_CHARS = 12
EVENTS = FOLDER / "events.txt"


class History(NamedTuple):
    """A history, by its name; the rest is in its files."""

    name: str

    @property
    def events(self) -> list[tuple[int, bytes]]:
        """Read the events: (seq, raw)."""
        return list(enumerate(_read(self._path("events")), start=1))

    @property
    def decisions(self) -> list[bytes]:
        """Read the decisions as they were recorded, in their order."""
        return _read(self._path("decisions"))

    def record(self, decisions: Sequence[bytes]) -> None:
        """Replace the recorded decisions."""
        _write(self._path("decisions"), decisions)

    def _path(self, what: str) -> Path:
        return FOLDER / f"{self.name}.{what}.xz"


def digest_of(lines: Iterable[bytes]) -> str:
    """Return a short digest of lines."""
    whole = hashlib.sha256()
    for line in lines:
        whole.update(line + b"\n")
    return whole.hexdigest()[:DIGEST_CHARS]


def digests_of_events() -> dict[str, str]:
    """Read, by history, the digest that its events had when it was added."""
    listed = (line.split(None, 2) for line in EVENTS.read_text("utf-8").splitlines())
    return {name: digest for name, digest, _ in listed}


def all_histories() -> list[History]:
    """List all histories, in the order in which they were added."""
    return [History(name) for name in digests_of_events()]


def digest_of_all() -> str:
    """Return the digest of all recorded decisions, as CHANGELOG.md names it."""
    return digest_of(f"{history.name} {digest_of(history.decisions)}".encode() for history in all_histories())


def add(name: str, shows: str, events: Sequence[bytes]) -> History:
    """Add a new event log; raise ``ValueError`` if there is one of that name."""
    history = History(name)
    if name in digests_of_events():
        raise ValueError(f"there is a history {name}, and events are never altered: choose another name")
    if not name or name.split() != [name] or "/" in name:
        raise ValueError(f"name is {name!r}; expected one word without a slash")
    _write(history._path("events"), events)
    with EVENTS.open("a", encoding="utf-8") as stream:
        stream.write(f"{name} {digest_of(events)} {shows}\n")
    return history


def _read(path: Path) -> list[bytes]:
    # Only ``\n`` ends an event, because it may contain any other line separator.
    return lzma.decompress(path.read_bytes()).split(b"\n")[:-1]


def _write(path: Path, lines: Sequence[bytes]) -> None:
    path.write_bytes(lzma.compress(b"".join(line + b"\n" for line in lines), preset=9 | lzma.PRESET_EXTREME))
