"""What a disk keeps: everything written when a process is killed, only what was forced when the machine crashes.

One that is full takes no record until there is room again.
"""

import errno
import random
from pathlib import Path

from brokers.mock.log.segment import SUFFIX, Segment


class Disk:
    """Note how far each segment file was forced to disk, and take away what was not."""

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
        """Cut each file of a dead broker somewhere between what was forced and what was written."""
        for path in sorted(directory.rglob(f"*{SUFFIX}")):
            size = path.stat().st_size
            forced = min(self._forced.get(path, 0), size)
            kept = self._rng.randint(forced, size)
            with path.open("r+b") as file:
                file.truncate(kept)
            self._forced[path] = kept
