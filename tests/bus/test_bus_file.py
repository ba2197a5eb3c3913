"""The file of an embedded bus: locked, replaced, foreign, or opened for reading only."""

import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bus.embedded import EmbeddedBus
from bus.interface import BusError, Decided, NoBusError, Page
from bus.open_bus import open_bus
from isrflow.sqlite import bus_file, checksums
from isrflow.sqlite.bus_file import Access
from isrflow.sqlite.lock_wait import while_locked
from tests.support.bus_rows import back_up, execute
from tests.support.lock_holder import Holder
from tests.support.waiting import TIMEOUT_S

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "private" / "bus.db"


@pytest.fixture
def bus(path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(path)
    bus.claim("job", {}, 1)
    yield bus
    bus.close()


@pytest.fixture
def holder(path: Path, bus: EmbeddedBus) -> Iterator[Holder]:
    holder = Holder(path)
    yield holder
    holder.let_go()


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def test_a_lock_that_is_never_released_is_an_error_that_names_the_file(path: Path, holder: Holder) -> None:
    impatient = EmbeddedBus(path, Access.WRITE, lock_timeout_s=0.2)
    with pytest.raises(BusError, match=r"another process has kept it locked for \d+ s: 'fuser .*bus\.db' shows it"):
        impatient.publish([EVENT])
    with pytest.raises(BusError, match="kept it locked"):
        impatient.commit(1, 1, [Decided(1, 0, b"said")], [])
    impatient.close()


def test_a_writer_waits_longer_than_one_timeout_of_sqlite(
    path: Path, bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_file, "LOCK_TOLD_S", 0.05)
    holder = Holder(path)
    patient = EmbeddedBus(path, Access.WRITE, lock_timeout_s=60)
    begun: list[int] = []

    def commit() -> None:
        patient.commit(1, 1, [Decided(1, 0, b"said")], [Page(0, -1, b"cluster")])
        begun.append(patient.publish([EVENT]))

    with capture_logs() as said:
        writer = threading.Thread(target=commit)
        writer.start()
        while not said:
            writer.join(0.01)
            assert writer.is_alive()
        holder.let_go()
        writer.join(TIMEOUT_S)
    assert begun == [2]
    assert bus.decisions((0, -1), 10) == [Decided(1, 0, b"said")]
    assert said[0]["event"] == "another process has the bus locked; waiting"
    assert said[0]["lock_timeout_s"] == 60
    patient.close()


def test_a_reader_waits_too_when_reading_is_locked(path: Path, bus: EmbeddedBus) -> None:
    bus.close()
    holder = Holder(path, "all")
    with pytest.raises(BusError, match="kept it locked"):
        EmbeddedBus(path, Access.READ, lock_timeout_s=0.2)
    opened: list[int] = []
    reader = threading.Thread(target=lambda: opened.append(EmbeddedBus(path, Access.READ).last_seq()))
    reader.start()
    holder.let_go()
    reader.join(TIMEOUT_S)
    assert opened == [1]


def test_only_locks_are_waited_for(path: Path) -> None:
    def fail() -> None:
        raise sqlite3.OperationalError("disk is full")

    with pytest.raises(sqlite3.OperationalError, match="disk is full"):
        while_locked(path, 60, fail)


@pytest.mark.parametrize("access", [Access.WRITE, Access.READ])
def test_only_a_creator_makes_a_bus(path: Path, access: Access) -> None:
    with pytest.raises(NoBusError, match=r"there is no bus at .*bus\.db"):
        EmbeddedBus(path, access)
    assert not path.parent.exists()
    path.parent.mkdir()
    path.touch()
    with pytest.raises(NoBusError, match="the file is empty"):
        EmbeddedBus(path, access)
    assert files(path) == {"bus.db": b""}


@pytest.mark.parametrize("access", list(Access))
def test_a_foreign_file_stays_as_it_is(path: Path, access: Access) -> None:
    path.parent.mkdir()
    for make in (lambda: path.write_bytes(b"this is no database" * 100), lambda: _database(path)):
        make()
        before = files(path)
        with pytest.raises(BusError, match=r"bus\.db is not a bus: "):
            EmbeddedBus(path, access)
        assert files(path) == before
        path.unlink()
    path.mkdir()
    with pytest.raises(BusError, match="expected a regular file"):
        EmbeddedBus(path, access)


def _database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE somebody (else_ TEXT)")
    connection.close()


def test_an_empty_file_becomes_a_bus_for_a_creator(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    bus = EmbeddedBus(path)
    assert bus.publish([EVENT]) == 1
    bus.close()


def test_a_lone_reader_leaves_and_changes_nothing(path: Path, bus: EmbeddedBus) -> None:
    bus.publish([EVENT])
    bus.close()
    before = files(path)
    assert list(before) == ["bus.db"]
    reader = open_bus(str(path), read_only=True)
    assert reader.last_seq() == 2
    assert reader.image() == (0, [])
    with pytest.raises(BusError, match="readonly"):
        reader.publish([EVENT])
    reader.close()
    assert files(path) == before


def test_a_lone_reader_sees_what_a_writer_adds(path: Path, bus: EmbeddedBus) -> None:
    bus.close()
    reader = EmbeddedBus(path, Access.READ)
    assert reader.last_seq() == 1
    reader.changed()
    assert not reader.changed()
    for last in (2, 3):
        writer = EmbeddedBus(path, Access.WRITE)
        assert writer.publish([EVENT]) == last
        assert reader.changed()
        assert reader.last_seq() == last
        writer.close()
    reader.close()


def test_a_bus_changed_under_a_lone_reader_is_not_trusted(
    path: Path, bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    bus.commit(1, 1, [Decided(1, 0, b"said")], [])
    bus.close()
    reader = EmbeddedBus(path, Access.READ)

    def check_while_a_writer_comes(body: bytes, crc: int | None, what: str) -> bytes:
        writer = EmbeddedBus(path, Access.WRITE)
        writer.publish([EVENT])
        request.addfinalizer(writer.close)
        return body

    with monkeypatch.context() as patched:
        patched.setattr(checksums, "check", check_while_a_writer_comes)
        with pytest.raises(BusError, match="try again"):
            reader.decisions((0, -1), 1)
    assert reader.last_seq() == 2
    reader.close()


@pytest.mark.parametrize("use", ["publish", "last_seq", "changed", "decided_seq"])
@pytest.mark.parametrize(
    ("replace", "said"),
    [
        (lambda path: path.unlink(), "removed or moved away"),
        (lambda path: path.rename(path.with_name("moved.db")), "removed or moved away"),
        (lambda path: (EmbeddedBus(path.with_name("b.db")).close(), path.with_name("b.db").rename(path)), "another"),
    ],
)
def test_a_file_that_was_replaced_is_noticed(bus: EmbeddedBus, use: str, replace, said: str) -> None:
    other = open_bus(str(bus.path), create=False)
    bus.publish([EVENT])
    replace(bus.path)
    for held in (bus, other):
        with pytest.raises(BusError, match=said):
            held.publish([EVENT]) if use == "publish" else getattr(held, use)()
    other.close()


def test_a_later_thread_refuses_a_replaced_file(bus: EmbeddedBus) -> None:
    bus.path.unlink()
    EmbeddedBus(bus.path).close()
    errors: list[str] = []

    def publish() -> None:
        try:
            bus.publish([EVENT])
        except BusError as error:
            errors.append(str(error))

    thread = threading.Thread(target=publish)
    thread.start()
    thread.join(TIMEOUT_S)
    assert "another file took its place" in errors[0]


def test_an_older_copy_that_was_written_over_it_is_noticed(path: Path, bus: EmbeddedBus, tmp_path: Path) -> None:
    back_up(path, tmp_path / "copy.db")
    bus.publish([EVENT] * 3)
    execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    # Written in place, as `cp` does, so the file keeps its inode.
    with (tmp_path / "copy.db").open("rb") as older, path.open("r+b") as file:
        shutil.copyfileobj(older, file)
        file.truncate()
    with pytest.raises(BusError, match=r"was replaced .* was 4 and is now 1"):
        # Another connection reads the file; this one's cache still holds the old content.
        _in_a_thread(bus.last_seq)


def _in_a_thread(call) -> None:
    errors: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(TIMEOUT_S)
    if errors:
        raise errors[0]


def test_its_files_are_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        bus = EmbeddedBus(tmp_path / "new" / "data" / "bus.db")
        bus.publish([EVENT])
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in bus.path.parent.iterdir()}
        assert modes == {"bus.db": 0o600, "bus.db-wal": 0o600, "bus.db-shm": 0o600}
        for folder in (bus.path.parent, bus.path.parent.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        # To let a group read the bus, set the file's mode; the files beside it follow.
        bus.close()
        bus.path.chmod(0o640)
        bus = EmbeddedBus(bus.path)
        bus.publish([EVENT])
        assert {stat.S_IMODE(file.stat().st_mode) for file in bus.path.parent.iterdir()} == {0o640}
        bus.close()
    finally:
        os.umask(before)


def test_a_program_may_have_a_thread_for_each_of_its_requests(bus: EmbeddedBus) -> None:
    def read() -> None:
        thread = threading.Thread(target=bus.last_seq)
        thread.start()
        thread.join()

    read()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        read()
    assert len(os.listdir("/proc/self/fd")) <= before + 3
