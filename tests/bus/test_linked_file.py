"""A bus file that is reached through a symbolic link. SQLite keeps its log beside the file that the link leads to."""

import os
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.open_bus import files_name
from bus.retention import wal_bytes
from isrflow.sqlite.bus_file import Access
from sinks.resources import files_of

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


@pytest.fixture
def link(tmp_path: Path) -> Path:
    disk = tmp_path / "large-disk"
    disk.mkdir()
    link = tmp_path / "bus.db"
    link.symlink_to(disk / "real.db")
    return link


def test_a_reader_sees_what_only_the_log_has(link: Path) -> None:
    writer = EmbeddedBus(Path(os.path.realpath(link)))
    lone = EmbeddedBus(link, Access.READ)
    assert lone.last_seq() == 0
    for last in (1, 2):
        assert writer.publish([EVENT]) == last
        reader = EmbeddedBus(link, Access.READ)
        assert reader.last_seq() == lone.last_seq() == last
        reader.close()
    lone.close()
    writer.close()


def test_the_log_counts_as_a_part_of_the_bus(link: Path) -> None:
    bus = EmbeddedBus(Path(os.path.realpath(link)))
    bus.publish([EVENT])
    through_link = EmbeddedBus(link, Access.READ)
    assert wal_bytes(link) == wal_bytes(bus.path) > 0
    assert sum(file.exists() for file in files_of(through_link)) == sum(file.exists() for file in files_of(bus)) == 3
    through_link.close()
    bus.close()


def test_both_names_stand_for_the_same_files_beside_it(link: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(link.parent)
    real = os.path.realpath(link)
    assert files_name(f"sqlite:{link}") == files_name("bus.db") == files_name(f"sqlite:{real}") == real
