"""A disk that hangs: each wait for it lasts until it is released."""

import os
import threading
from pathlib import Path

import pytest

from tests.support.waiting import TIMEOUT_S


class HangingDisk:
    """The waits for files whose path begins with ``path``, which last until ``release``."""

    def __init__(self, patch: pytest.MonkeyPatch, path: Path) -> None:
        self.is_waited_for, self._released = threading.Event(), threading.Event()
        self._path = str(path)
        self._sync = os.fsync
        patch.setattr(os, "fsync", self._wait)

    def _wait(self, descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(self._path):
            self.is_waited_for.set()
            assert self._released.wait(TIMEOUT_S), "the disk was never released"
        self._sync(descriptor)

    def release(self) -> None:
        """End all waits, and let later ones pass."""
        self._released.set()
