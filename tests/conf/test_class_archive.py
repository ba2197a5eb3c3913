"""A complete class archive is used. With a damaged one Java still starts, only more slowly."""

import subprocess
from pathlib import Path

import pytest

from conf.class_archive import ClassArchive
from conf.java import java_home
from tests.support.waiting import TIMEOUT_S


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    return ClassArchive(tmp_path / "classes", "program-1.0", java_home())


def java(archive: ClassArchive, *options: str) -> str:
    """Run Java, and return what it printed besides its version."""
    command = [archive.home / "bin" / "java", *options, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(archive: ClassArchive) -> Path:
    with archive.written() as options:
        java(archive, *options)
    assert archive.path is not None
    return archive.path


def test_a_written_archive_is_used(archive: ClassArchive) -> None:
    assert (archive.path, archive.options) == (None, [])
    path = write(archive)
    said = java(archive, *archive.options, "-Xlog:cds=info")
    assert str(path) in said
    assert [one.name for one in archive.directory.iterdir()] == [path.name]


def test_a_truncated_archive_is_not_used(archive: ClassArchive) -> None:
    path = write(archive)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    assert (archive.path, archive.options) == (None, [])
    assert write(archive).stat().st_size > 0, "it is replaced"


def test_java_starts_silently_with_an_archive_that_does_not_fit(archive: ClassArchive) -> None:
    path = write(archive)
    path.chmod(0o600)
    path.write_bytes(b"x" * path.stat().st_size)
    assert archive.options
    assert java(archive, *archive.options) == ""


def test_an_archive_that_was_not_written_leaves_none(archive: ClassArchive) -> None:
    write(archive)
    with pytest.raises(RuntimeError, match="wrote no archive"), archive.written():
        pass
    assert list(archive.directory.iterdir()) == []


def test_another_java_has_another_archive(archive: ClassArchive, tmp_path: Path) -> None:
    write(archive)
    assert archive._replace(home=tmp_path).path is None
