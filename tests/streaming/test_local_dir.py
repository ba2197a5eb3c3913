"""Spark's local folder is removed with its job, or by the next one."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from streaming.local_dir import local_dir, socket_dir, temporary_dir

HOLD = """
import sys
from pathlib import Path
from streaming.local_dir import local_dir
with local_dir(Path(sys.argv[1])) as directory:
    (directory / "blocks").write_text("x")
    print(directory, flush=True)
    sys.stdin.read()
"""


def test_the_local_folder_is_removed_with_its_job(tmp_path: Path) -> None:
    with local_dir(tmp_path / "local") as directory:
        (directory / "blocks").mkdir()
    assert list((tmp_path / "local").iterdir()) == []


def test_leftovers_of_a_killed_job_are_removed_and_folders_in_use_stay(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        used = Path(other.stdout.readline().strip())
        with local_dir(tmp_path) as directory:
            assert sorted(tmp_path.iterdir()) == sorted([used, directory])
        other.kill()
    assert (used / "blocks").exists()
    with local_dir(tmp_path) as directory:
        assert list(tmp_path.iterdir()) == [directory]


def test_the_directory_of_sockets_is_private_and_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with socket_dir() as directory:
        assert directory is not None
        assert directory.parent.stat().st_mode & 0o777 == 0o700
        assert len(str(directory.relative_to(tmp_path))) < 35
    assert not directory.exists()


def test_a_temporary_directory_goes_with_its_process_or_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_dir() as directory:
        left = directory.with_name("job-killed")
        left.mkdir()
        with temporary_dir() as other:
            assert sorted(other.parent.iterdir()) == sorted([directory, other])
        directory.parent.chmod(0o777)
        with temporary_dir() as elsewhere:
            assert elsewhere.parent == tmp_path


def test_a_directory_of_sockets_that_others_may_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with socket_dir() as directory:
        assert directory is not None
        directory.parent.chmod(0o777)
        parent = directory.parent
    with socket_dir() as refused:
        assert refused is None
    parent.rmdir()
    parent.symlink_to(tmp_path)
    with socket_dir() as refused:
        assert refused is None
    parent.unlink()
    parent.write_text("")
    with socket_dir() as refused:
        assert refused is None
