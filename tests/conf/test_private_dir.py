"""Directories for their owner alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from conf.private_dir import private_dir
from streaming.checkpoint_lock import Holder, checkpoint_lock
from streaming.local_dir import local_dir


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_and_its_new_parents_are_for_the_owner_alone(tmp_path: Path) -> None:
    assert private_dir(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700


def test_an_existing_directory_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o750)
    private_dir(tmp_path / "shared")
    private_dir(tmp_path / "shared" / "own")
    assert mode_of(tmp_path / "shared") == 0o750
    assert mode_of(tmp_path / "shared" / "own") == 0o700


def test_a_file_in_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "file" / "far" / "below"):
        with pytest.raises(NotADirectoryError, match="it is a file, but must be a directory") as caught:
            private_dir(path)
        assert caught.value.filename == str(tmp_path / "file")


def test_what_the_engine_creates_beside_its_bus_is_for_the_owner_alone(tmp_path: Path) -> None:
    with checkpoint_lock(tmp_path / "data" / "checkpoint", Holder(1, "bus.db", ())) as lock:
        assert lock.take()
    assert mode_of(tmp_path / "data") == 0o700
    with local_dir(tmp_path / "data" / "spark-local") as directory:
        assert mode_of(directory) == mode_of(directory.parent) == 0o700
