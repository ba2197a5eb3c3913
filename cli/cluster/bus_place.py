"""The bus of a cluster: a file, or Kafka topics."""

import contextlib
from pathlib import Path
from typing import NamedTuple

from bus.image import read_image
from bus.interface import Bus, NoBusError
from bus.open_bus import open_bus
from conf.private_dir import private_dir
from isrflow.bus_url import EMBEDDED, kind_of
from isrflow.contract import SQLITE
from state.cluster import Cluster


class BusPlace(NamedTuple):
    """A bus by its URL. A file's path is absolute, because processes in other directories open it too."""

    url: str

    @classmethod
    def of(cls, bus: "Path | str") -> "BusPlace":
        """Parse a path, ``sqlite:PATH`` or ``kafka://...``."""
        text = str(bus)
        return cls(f"{SQLITE}{Path(text.removeprefix(SQLITE)).resolve()}" if kind_of(text) is EMBEDDED else text)

    @property
    def path(self) -> Path | None:
        """The bus's file; None for a bus of another kind."""
        return Path(self.url.removeprefix(SQLITE)) if kind_of(self.url) is EMBEDDED else None

    def exists(self) -> bool:
        """Check whether the bus exists. Raises ``BusError`` if that cannot be determined."""
        if self.path is not None:
            return self.path.exists()
        try:
            self.open(read_only=True).close()
        except NoBusError:
            return False
        return True

    def open(self, *, create: bool = True, read_only: bool = False) -> Bus:
        """Open the bus. Create a missing one, unless ``read_only``. Raises ``BusError``."""
        if create and not read_only and self.path is not None:
            private_dir(self.path.parent)
        return open_bus(self.url, create=create, read_only=read_only)

    def cluster(self) -> Cluster:
        """Read the last committed state of brokers and gateways. Raises ``BusError`` or ``CodecError``."""
        with contextlib.closing(self.open(read_only=True)) as bus:
            return read_image(bus.image()).cluster

    def remove(self) -> None:
        """Remove the bus's file. Topics belong to their Kafka cluster, so they stay."""
        if self.path is not None:
            for ending in ("", "-wal", "-shm"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def __str__(self) -> str:
        return str(self.path or self.url)
