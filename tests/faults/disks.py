"""A disk of its own for a test: small enough to fill up, and free to be made read-only."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

MOUNT_TIMEOUT_S = 120
_BLOCK = b"\0" * (1 << 16)


class Disk:
    """A mounted file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Use up all free space."""
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while True:
                file.write(_BLOCK)
        # The last write may have been short; single bytes fill the rest of its block.
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while True:
                file.write(b"\0")

    def free(self) -> None:
        """Free the space that ``fill`` used."""
        self._filler.unlink()

    def read_only(self, yes: bool) -> None:
        """Mount the disk again, read-only or writable, once no process has a file open for writing."""
        deadline = time.monotonic() + MOUNT_TIMEOUT_S
        while True:
            try:
                _mount("-o", f"remount,{'ro' if yes else 'rw'}", str(self.folder))
                return
            except subprocess.CalledProcessError as error:
                if time.monotonic() > deadline:
                    holders = subprocess.run(
                        ["fuser", "-vm", str(self.folder)], capture_output=True, text=True, check=False
                    )
                    raise TimeoutError(f"{error.stderr!r}: {holders.stderr}") from error
            time.sleep(0.1)


@contextlib.contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Disk]:
    """Mount ``mib`` MiB of memory at ``folder`` until the block ends; skips the test where that is not allowed."""
    folder.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={mib}m,mode=700", "tmpfs", str(folder))
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        pytest.skip(f"a disk of its own needs the right to mount a tmpfs: {error}")
    try:
        yield Disk(folder)
    finally:
        # Lazily, because a process that was just killed may still hold a file for a moment.
        subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=MOUNT_TIMEOUT_S)


@contextlib.contextmanager
def small_disk_under(folder: Path, mib: int) -> Iterator[Disk]:
    """Move a folder's contents to its own disk until the block ends; no process may use it at either end."""
    aside = folder.with_name(f"{folder.name}.aside")
    folder.rename(aside)
    try:
        with small_disk(folder, mib) as disk:
            shutil.copytree(aside, folder, dirs_exist_ok=True)
            yield disk
            shutil.rmtree(aside)
            shutil.copytree(folder, aside)
        folder.rmdir()
    finally:
        aside.rename(folder)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True, timeout=MOUNT_TIMEOUT_S)
