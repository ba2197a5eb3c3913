"""Archives of the classes that a Java program loads.

Java maps them instead of reading, checking and linking each class (class data sharing, JEP 350). An archive fits one
Java and one class path. Java itself checks that, and starts without an archive that does not fit. But it crashes if the
end of the file is missing. So the name of a finished archive ends with its size.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from conf.work_dir import remove_abandoned, work_dir


class ClassArchive(NamedTuple):
    """The archive of ``program`` for the Java at ``home``, in ``directory``; it need not exist yet."""

    directory: Path
    program: str
    home: Path

    @property
    def _name(self) -> str:
        release = self.home / "release"
        text = release.read_bytes() if release.is_file() else b""
        return f"{self.program}-java-{hashlib.sha256(bytes(self.home) + text).hexdigest()[:8]}"

    @property
    def path(self) -> Path | None:
        """A finished archive, if there is one."""
        name = self._name
        for path in self.directory.glob(f"{name}-*.jsa"):
            if path.stem == f"{name}-{path.stat().st_size}":
                return path
        return None

    @property
    def options(self) -> list[str]:
        """The options with which Java uses the archive without warnings, if there is one.

        Reading them removes an unfinished archive of a killed process, which may have a hundred megabytes.
        """
        remove_abandoned(self.directory)
        path = self.path
        return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if path else []

    @contextlib.contextmanager
    def written(self) -> Iterator[list[str]]:
        """Remove a former archive, and yield options for a Java that ends within the block and then writes one.

        Raises ``RuntimeError`` if it wrote none.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        name = self._name
        # Java cannot use one archive and write another.
        for former in self.directory.glob(f"{name}-*"):
            former.unlink()
        with work_dir(self.directory) as aside:
            unfinished = aside / name
            yield [f"-XX:ArchiveClassesAtExit={unfinished}", "-Xlog:disable"]
            if not unfinished.exists():
                raise RuntimeError(f"Java wrote no archive of classes to {unfinished}")
            unfinished.rename(self.directory / f"{name}-{unfinished.stat().st_size}.jsa")
