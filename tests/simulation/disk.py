"""Disks that keep everything when a process is killed, but only flushed data when the machine crashes.

A full disk takes no record until there is room again.
"""

import errno
import random
from pathlib import Path

from brokers.mock.log.segment import SUFFIX, Segment


class Disk:
    """A disk that knows how much of each segment file was flushed, and can lose the rest."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._forced: dict[Path, int] = {}
        self.full: set[Path] = set()

    def check_room(self, segment: Segment) -> None:
        """Raise OSError when the disk of a broker is full."""
        if self.full and not self.full.isdisjoint(segment.path.parents):
            raise OSError(errno.ENOSPC, "no space left on device")

    def forced(self, segment: Segment) -> None:
        self._forced[segment.path] = segment.size

    def lose_unforced(self, directory: Path) -> None:
        """Cut each file of a dead broker somewhere between its flushed and its written end."""
        for path in sorted(directory.rglob(f"*{SUFFIX}")):
            size = path.stat().st_size
            forced = min(self._forced.get(path, 0), size)
            kept = self._rng.randint(forced, size)
            with path.open("r+b") as file:
                file.truncate(kept)
            self._forced[path] = kept
