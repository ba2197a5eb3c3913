"""A cache that cannot be written is replaced by a temporary folder, one for all processes of a user."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conf.cache import cache_dir

PROGRAM = "from conf.cache import cache_dir; print(cache_dir())"


def cache_of_a_process(temporary: Path) -> Path:
    """Start a process whose own cache cannot be made, and return the folder that it uses."""
    environment = os.environ | {"ISRFLOW_CACHE": "/dev/null/cache", "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def test_processes_share_one_temporary_cache_that_is_theirs_alone(tmp_path: Path) -> None:
    found = cache_of_a_process(tmp_path)
    assert found == cache_of_a_process(tmp_path)
    assert [found] == list(tmp_path.iterdir())
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("wrong", ["open", "link", "file"])
def test_a_temporary_cache_that_another_user_could_have_made_is_not_used(tmp_path: Path, wrong: str) -> None:
    expected = tmp_path / f"isrflow-cache-{os.getuid()}"
    if wrong == "open":
        expected.mkdir()
        expected.chmod(0o777)
    elif wrong == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        expected.symlink_to(tmp_path / "theirs")
    else:
        expected.touch()
    found = cache_of_a_process(tmp_path)
    assert found != expected
    assert found.is_dir()


def test_a_process_that_becomes_another_user_does_not_keep_the_former_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISRFLOW_CACHE", "/dev/null/cache")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    former = cache_dir()
    another = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    assert cache_dir() != former
