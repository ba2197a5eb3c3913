"""A value made from files, and made again when they change. If changed files are unusable, the former value stays."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import structlog

# The shortest time between two looks at the files.
LOOK_INTERVAL_S = 1.0

T = TypeVar("T")
_Signature = tuple[tuple[int, int, int], ...]

logger = structlog.get_logger("isrflow.security")


class Reread(Generic[T]):
    """The value that ``make`` makes from ``files``. Any thread may read it.

    Errors of the first ``make`` reach the caller. Later ones are logged, once for each change of the files.
    """

    def __init__(self, files: Sequence[Path], make: Callable[[], T], look_interval_s: float = LOOK_INTERVAL_S) -> None:
        self._files = tuple(files)
        self._make = make
        self._look_interval_s = look_interval_s
        self._lock = threading.Lock()
        # Before the value, so that a change while it is made is seen at the next look.
        self._signature = self._look()
        self._value = make()
        self._looked_s = time.monotonic()

    @property
    def newest(self) -> T:
        """The value from the present files, or the former value if they are unusable."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._looked_s >= self._look_interval_s:
                self._looked_s = now_s
                self._renew()
            return self._value

    def _renew(self) -> None:
        signature = self._look()
        if signature == self._signature:
            return
        self._signature = signature
        names = ", ".join(map(str, self._files))
        try:
            self._value = self._make()
        except (OSError, ValueError) as error:
            # Not the error's text alone, because it need not name the file. It never holds what is in the file.
            logger.error("changed files cannot be used; the former ones stay in force", files=names, error=str(error))
        else:
            logger.info("changed files are in force", files=names)

    def _look(self) -> _Signature:
        return tuple(_signature_of(file) for file in self._files)


def _signature_of(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
