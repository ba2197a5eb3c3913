"""Small files that are always whole."""

import stat
from pathlib import Path

import pytest

from conf import whole_file
from conf.whole_file import replace


def test_a_write_that_fails_leaves_the_former_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    replace(file, "former")

    def full(descriptor: int) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(whole_file.os, "fsync", full)
        with pytest.raises(OSError, match="the disk is full"):
            replace(file, "new")
    assert file.read_text() == "former"
    replace(file, b"newest")
    assert file.read_bytes() == b"newest"
    assert list(tmp_path.iterdir()) == [file]


def test_a_secret_file_is_secret_from_the_beginning(tmp_path: Path) -> None:
    file = tmp_path / "file"
    # A crash left it, readable for everybody.
    (tmp_path / "file.tmp").write_text("former")
    replace(file, "secret", 0o600)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "secret"
