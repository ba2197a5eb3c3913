"""The files that move with a metadata log that is set aside, and the files that stay."""

from pathlib import Path

from brokers.gateways.kraft.log.directory import (
    LOCK,
    finish_replacement,
    install_replacement,
    set_aside,
    start_replacement,
)
from brokers.gateways.kraft.security.audit_log import FILE_NAME

SEGMENT, ENDS = f"{0:020d}.log", f"{0:020d}.ends"
SNAPSHOT = f"{7:020d}-{1:010d}.checkpoint"
OTHERS = {FILE_NAME, f"{FILE_NAME}.1", LOCK}


def directory(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text(name)
    # The root of a disk.
    (folder / "lost+found").mkdir()
    return folder


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_directory_without_a_log_is_left_as_it_is(tmp_path: Path) -> None:
    held = directory(tmp_path, *OTHERS)
    assert set_aside(held) is None
    assert names_in(held) == {*OTHERS, "lost+found"}


def test_only_the_files_of_a_log_are_set_aside(tmp_path: Path) -> None:
    log = {SEGMENT, ENDS, SNAPSHOT, f"{SNAPSHOT}.part"}
    held = directory(tmp_path, *log, *OTHERS)
    aside = set_aside(held)
    assert aside is not None
    assert names_in(aside) == log
    assert names_in(held) == {*OTHERS, "lost+found", aside.name}


def test_the_audit_log_stays_when_another_log_is_put_into_place(tmp_path: Path) -> None:
    held = directory(tmp_path, SEGMENT, *OTHERS)
    (start_replacement(held) / SEGMENT).write_text("another")
    install_replacement(held)
    finish_replacement(held)
    assert (held / SEGMENT).read_text() == "another"
    assert (held / FILE_NAME).read_text() == FILE_NAME
    assert names_in(held / "aside-1") == {SEGMENT}


def test_only_the_files_of_a_log_are_put_into_place(tmp_path: Path) -> None:
    held = directory(tmp_path, SEGMENT, *OTHERS)
    (held / "aside-1").mkdir()
    (held / "aside-1" / SEGMENT).write_text("an earlier one")
    replacement = start_replacement(held)
    (replacement / SEGMENT).write_text("another")
    (replacement / LOCK).write_text("")
    (replacement / "aside-1").mkdir()
    (replacement / "aside-1" / ENDS).write_text("of the other log")
    install_replacement(held)
    assert (held / SEGMENT).read_text() == "another"
    assert (held / LOCK).read_text() == LOCK
    assert names_in(held) == {SEGMENT, *OTHERS, "lost+found", "aside-1", "aside-2"}
    assert names_in(held / "aside-1") == names_in(held / "aside-2") == {SEGMENT}
