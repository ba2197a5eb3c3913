"""Copies of Spark's signed jars without their signatures.

The problem: Spark compiles expressions with Janino, and of all of Spark's jars only those of Janino are signed. Java
checks each class that it loads from a signed jar, and never puts one into an archive of classes. That is a quarter of a
second of CPU time at each start.

The insight: the copies are made once, where the archive is (``streaming/class_archive.py``), and are found before the
originals. The jars were checked when Spark was installed. Their signer is named "DUMMY", so the signature says nothing.
"""

import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark

_SIGNATURES = (".SF", ".DSA", ".RSA", ".EC")
_META = "META-INF/"
_MANIFEST = f"{_META}MANIFEST.MF"


def unsigned_jars(directory: Path | None = None) -> list[Path]:
    """Return the finished copies, by default those for this environment's Spark."""
    return sorted((directory or _own()).glob("*.jar"))


def write_unsigned_jars(jars: Path | None = None, directory: Path | None = None) -> list[Path]:
    """Copy the signed ones of a folder of ``jars`` into ``directory``. Raises ``OSError``.

    By default these are the jars of this environment's Spark, and the folder in which ``unsigned_jars`` looks.
    """
    to = directory or _own()
    to.mkdir(parents=True, exist_ok=True)
    for former in to.iterdir():
        former.unlink()
    for jar in sorted((jars or Path(pyspark.__file__).parent / "jars").glob("*.jar")):
        _copy_if_signed(jar, to)
    return unsigned_jars(to)


def _own() -> Path:
    return Path(sys.prefix) / "share" / "isrflow" / f"spark-{pyspark.__version__}-unsigned"


def _copy_if_signed(jar: Path, to: Path) -> None:
    with zipfile.ZipFile(jar) as signed:
        if not any(map(_is_signature, signed.namelist())):
            return
        unfinished = to / f"{jar.stem}-{os.getpid()}"
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as copy:
            for entry, body in _without_signature(signed):
                copy.writestr(entry, body)
    unfinished.rename(to / jar.name)


def _is_signature(name: str) -> bool:
    return name.startswith(_META) and name.count("/") == 1 and name.upper().endswith(_SIGNATURES)


def _without_signature(signed: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, bytes]]:
    for entry in signed.infolist():
        if _is_signature(entry.filename):
            continue
        body = signed.read(entry)
        if entry.filename == _MANIFEST:
            # The sections after the first one have a digest of each file.
            body = body.replace(b"\r\n", b"\n").split(b"\n\n")[0] + b"\n\n"
        yield entry, body
