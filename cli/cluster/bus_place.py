"""The bus that a cluster lives on: a file, or topics on Kafka."""

from pathlib import Path
from typing import NamedTuple

from bus.interface import Bus, NoBusError
from bus.opened import KAFKA, open_bus
from conf.private_dir import private_dir
from conf.settings import SQLITE


class BusPlace(NamedTuple):
    """Name a bus by its URL; a file's path is absolute, for processes elsewhere open it too."""

    url: str

    @classmethod
    def of(cls, bus: "Path | str") -> "BusPlace":
        """Take a path, ``sqlite:PATH`` or ``kafka://...``."""
        text = str(bus)
        return cls(text if text.startswith(KAFKA) else f"{SQLITE}{Path(text.removeprefix(SQLITE)).resolve()}")

    @property
    def path(self) -> Path | None:
        """Name the file; None for topics."""
        return None if self.url.startswith(KAFKA) else Path(self.url.removeprefix(SQLITE))

    def exists(self) -> bool:
        """Say whether the bus is there. Raises ``BusError`` when nobody can tell."""
        if self.path is not None:
            return self.path.exists()
        try:
            self.open(read_only=True).close()
        except NoBusError:
            return False
        return True

    def open(self, *, create: bool = True, read_only: bool = False) -> Bus:
        """Open the bus, and make it where it is not there, but not to read only. Raises ``BusError``."""
        if create and not read_only and self.path is not None:
            private_dir(self.path.parent)
        return open_bus(self.url, create=create, read_only=read_only)

    def remove(self) -> None:
        """Remove a file; topics belong to their Kafka, and stay."""
        if self.path is not None:
            for ending in ("", "-wal", "-shm"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def __str__(self) -> str:
        return str(self.path or self.url)
