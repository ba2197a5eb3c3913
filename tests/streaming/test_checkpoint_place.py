"""Each bus has its own checkpoint folder, and an unusable one is reported before the job claims."""

import errno
import os
from pathlib import Path

import pytest

from conf.loader import load
from conf.settings import Settings
from streaming import checkpoint_place
from streaming.checkpoint import move_aside
from streaming.checkpoint_place import check_usable, checkpoint_of


def place(bus: str) -> Path:
    return checkpoint_of(Settings(bus=bus))


def test_the_default_checkpoint_is_beside_the_bus_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert checkpoint_of(Settings()) == tmp_path / "data" / "bus.db.checkpoint"
    assert place("sqlite:b.db") == tmp_path / "b.db.checkpoint"
    assert place("sqlite:/var/b.db") == Path("/var/b.db.checkpoint")


def test_a_named_checkpoint_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert checkpoint_of(Settings(checkpoint_dir="own")) == tmp_path / "own"


@pytest.mark.parametrize("named", ["checkpoint", ""])
def test_a_checkpoint_behind_a_link_stays_on_its_disk(named: str, tmp_path: Path) -> None:
    disk = tmp_path / "large-disk"
    link = tmp_path / (named or "bus.db.checkpoint")
    link.symlink_to(disk / "checkpoint")
    checkpoint = checkpoint_of(Settings(bus=str(tmp_path / "bus.db"), checkpoint_dir=str(link) if named else ""))
    check_usable(checkpoint)
    (disk / "checkpoint" / "offsets").mkdir(parents=True)
    move_aside(checkpoint, lambda: None)
    assert link.is_symlink()
    assert [path.name for path in disk.iterdir()] == ["checkpoint.aside"]
    assert checkpoint_of(Settings(checkpoint_dir=str(disk / "checkpoint"))) == checkpoint


def test_the_profile_of_a_laptop_leaves_the_checkpoint_beside_the_bus(tmp_path: Path) -> None:
    profiles = Path(checkpoint_place.__file__).resolve().parents[1] / "conf" / "profiles"
    settings = load(profiles / "laptop.toml", [f"bus=sqlite:{tmp_path}/x.db"])
    assert checkpoint_of(settings) == tmp_path / "x.db.checkpoint"


def test_checkpoints_of_kafka_buses_have_valid_and_distinct_names() -> None:
    urls = [
        "kafka://h:9092",
        "kafka://h:9093",
        "kafka://h:9092/a.b",
        "kafka://h:9092/a-b",
        "kafka://h-9092:1/a",
        "kafka://[::1]:9092/a",
        f"kafka://h:1/{'p' * 199}a",
        f"kafka://h:1/{'p' * 199}b",
    ]
    names = [place(url).name for url in urls]
    assert len(set(names)) == len(urls)
    assert all(len(name) < 200 and not set(name) & set("/:[],") for name in names)
    assert place("kafka://a:1,b:2") == place("kafka://b:2,a:1/isrflow")


def test_a_usable_folder_stays_as_it_is(tmp_path: Path) -> None:
    check_usable(tmp_path / "new" / "checkpoint")
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "there" / "offsets").mkdir(parents=True)
    check_usable(tmp_path / "there")
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "there", "offsets"] or sorted(
        path.name for path in tmp_path.rglob("*")
    ) == ["new", "offsets", "there"]


def test_a_file_is_no_checkpoint_folder(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("")
    for path in (tmp_path / "checkpoint", tmp_path / "checkpoint" / "in-a-file"):
        with pytest.raises(NotADirectoryError, match=r"it is a file, but must be a directory: '.*/checkpoint'"):
            check_usable(path)


def test_a_mount_point_cannot_be_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda self: True)
    with pytest.raises(OSError, match="a directory in it can"):
        check_usable(tmp_path)


def test_an_unwritable_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkpoint" / "state").mkdir(parents=True)
    # A test run as root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "state")
    with pytest.raises(PermissionError, match="checkpoint/state"):
        check_usable(tmp_path / "checkpoint")


def test_a_full_disk_is_noticed_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        check_usable(tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []
