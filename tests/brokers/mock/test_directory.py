"""A mock broker's directory, also after kills."""

import errno
import shutil
from pathlib import Path

import pytest

from brokers.mock.log.directory import LogDirectory
from brokers.mock.log.log import LogConfig
from state.events import TopicPartition
from state.topic_name import NAME_LENGTH_MAX
from tests.support.batches import batch

PLACE = TopicPartition("t", 0)


def folders(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir())


def test_a_recreated_topic_gets_another_log(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    directory.open_log(PLACE, "old", LogConfig()).append_as_leader(batch(b"x"), 0)
    assert directory.open_log(PLACE, "new", LogConfig()).log_end_offset == 0
    assert directory.open_log(PLACE, "new", LogConfig()).log_end_offset == 0
    assert folders(tmp_path) == ["t-0", "t-0.old-stray"]


def test_deletion_spares_a_successor_of_the_same_name(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    directory.open_log(PLACE, "new", LogConfig())
    directory.delete(PLACE, "old")
    assert folders(tmp_path) == ["t-0"]
    directory.delete(PLACE, "new")
    directory.delete(PLACE, "new")
    assert folders(tmp_path) == []


def test_foreign_folders_are_set_aside_and_remnants_removed(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    for partition in range(3):
        directory.open_log(TopicPartition("t", partition), "id", LogConfig())
    (tmp_path / "t-7-born").mkdir()
    (tmp_path / "t-8.id-delete").mkdir()
    directory.sweep({TopicPartition("t", 0): "id", TopicPartition("t", 1): "other"})
    assert folders(tmp_path) == ["t-0", "t-1.id-stray", "t-2.id-stray"]


def test_strays_are_counted_until_they_are_removed(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    # A topic may be named as if it were one.
    for topic in ("t", "t-stray", "t.id-stray"):
        directory.open_log(TopicPartition(topic, 0), "id", LogConfig()).close()
    assert directory.strays() == 0
    directory.sweep({TopicPartition("t-stray", 0): "id", TopicPartition("t.id-stray", 0): "id"})
    assert directory.strays() == LogDirectory(tmp_path).strays() == 1
    (tmp_path / "t-0.id-stray").rename(tmp_path.parent / "elsewhere")
    assert directory.strays() == 0
    shutil.rmtree(tmp_path)
    assert directory.strays() == 0, "a lost directory does not fail a scrape"


def test_a_kill_between_making_and_naming_a_folder_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "t-0.id-born").mkdir()
    log = LogDirectory(tmp_path).open_log(PLACE, "id", LogConfig())
    assert log.log_end_offset == 0
    assert folders(tmp_path) == ["t-0"]


@pytest.mark.parametrize("length", [222, 223, 224, 247, 248, NAME_LENGTH_MAX])
def test_a_topic_may_have_any_legal_name(tmp_path: Path, length: int) -> None:
    """A folder's name has at most 255 characters, also while it is made, set aside or deleted."""
    directory, place = LogDirectory(tmp_path), TopicPartition("a" * length, 9)
    sibling = TopicPartition("a" * length, 8)
    for topic_id in ("former-topic-topic-id1", "topic-topic-topic-id22"):
        for one in (place, sibling):
            directory.open_log(one, topic_id, LogConfig()).close()
    assert len(folders(tmp_path)) == 4
    directory.delete(place, "topic-topic-topic-id22")
    directory.delete(sibling, "topic-topic-topic-id22")
    assert [name[-28:] for name in folders(tmp_path)] == ["former-topic-topic-id1-stray"] * 2


def test_an_error_that_is_not_of_the_disk_does_not_lose_the_directory(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    directory.lost(OSError(errno.ENAMETOOLONG, "File name too long"))
    assert not directory.is_lost
    directory.lost(OSError(errno.EIO, "Input/output error"))
    assert directory.is_lost


def test_a_clean_stop_is_reported_once(tmp_path: Path) -> None:
    LogDirectory(tmp_path).mark_clean_shutdown(42)
    assert LogDirectory(tmp_path).previous_broker_epoch == 42
    assert LogDirectory(tmp_path).previous_broker_epoch == -1


def test_high_watermarks_are_kept(tmp_path: Path) -> None:
    LogDirectory(tmp_path).checkpoint_high_watermarks({PLACE: 17, TopicPartition("a", 3): 0})
    assert LogDirectory(tmp_path).high_watermarks == {PLACE: 17, TopicPartition("a", 3): 0}
    (tmp_path / "replication-offset-checkpoint").write_text("0\n3\nt 0 17\n")
    assert LogDirectory(tmp_path).high_watermarks == {}
