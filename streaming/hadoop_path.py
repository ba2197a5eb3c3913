"""A checkpoint on any file system that Hadoop knows, with the part of ``pathlib`` that checkpoints need."""

import contextlib
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext


class HadoopPath:
    """The URI of a file or directory, reached through Spark's JVM. So it can be used only while a context runs.

    Every method that looks or writes raises ``OSError``.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")

    def __str__(self) -> str:
        return self._uri

    def __truediv__(self, name: str) -> "HadoopPath":
        return HadoopPath(f"{self._uri}/{name}")

    @property
    def name(self) -> str:
        return self._uri.rpartition("/")[2]

    @property
    def parent(self) -> "HadoopPath":
        return HadoopPath(self._uri.rpartition("/")[0])

    def with_name(self, name: str) -> "HadoopPath":
        return self.parent / name

    def exists(self) -> bool:
        with self._files() as (files, path):
            return bool(files.exists(path))

    def glob(self, pattern: str) -> list["HadoopPath"]:
        """Return the entries of a directory whose names match ``pattern``; none if there is no directory."""
        with self._files() as (files, path):
            names = [one.getPath().getName() for one in files.listStatus(path)] if files.exists(path) else []
        return [self / name for name in names if fnmatch(name, pattern)]

    def read_bytes(self) -> bytes:
        with self._files() as (files, path):
            stream = files.open(path)
            try:
                return bytes(_jvm().org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, body: bytes) -> None:
        with self._files() as (files, path):
            stream = files.create(path, True)
            try:
                stream.write(bytearray(body))
            finally:
                stream.close()

    def write_text(self, text: str) -> None:
        self.write_bytes(text.encode())

    def make(self) -> None:
        """Create the directory and its missing parents."""
        with self._files() as (files, path):
            files.mkdirs(path)

    def rename(self, target: "HadoopPath") -> None:
        with self._files() as (files, path):
            if not files.exists(path):
                raise FileNotFoundError(f"{self} does not exist")
            if not files.rename(path, _jvm().org.apache.hadoop.fs.Path(str(target))):
                raise OSError(f"{self} cannot be renamed to {target}")

    def remove(self) -> None:
        """Delete it with everything in it, if it exists."""
        with self._files() as (files, path):
            files.delete(path, True)

    @contextlib.contextmanager
    def _files(self) -> Iterator[tuple[Any, Any]]:
        """Yield Hadoop's file system and path, and raise its errors as ``OSError``."""
        context = SparkContext._active_spark_context
        if context is None:
            raise OSError(f"{self} cannot be reached: Spark has stopped")
        try:
            path = _jvm().org.apache.hadoop.fs.Path(self._uri)
            jsc: Any = context._jsc
            yield path.getFileSystem(jsc.hadoopConfiguration()), path
        except Py4JJavaError as error:
            cause: Any = error.java_exception
            raise OSError(f"{self}: {cause.getClass().getSimpleName()}: {cause.getMessage()}") from error
        except Py4JError as error:
            raise OSError(f"{self}: {error}") from error


def _jvm() -> Any:
    return SparkContext._jvm
