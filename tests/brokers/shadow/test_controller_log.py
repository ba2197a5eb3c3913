"""A controller's log file is read on as it grows, is rotated, and is cut off."""

import time
from pathlib import Path

import pytest

from brokers.shadow.controller_log import HISTORY_BYTES, LINE_BYTES_MAX, ControllerLog, Reason, Saying

NOW_MS = 1_770_000_000_000


def line(message: str, time_ms: int = NOW_MS) -> str:
    """Write a line in Kafka's own layout."""
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms // 1000))
    return f"[{shown},{time_ms % 1000:03}] INFO [QuorumController id=1] {message} (org.apache.kafka.controller)\n"


def session(broker: int, epoch: int) -> str:
    return f"Fencing broker {broker} at epoch {epoch} because its session has timed out."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "controller.log"


def texts(log: ControllerLog, broker: int = 1, epoch: int | None = None) -> list[str]:
    log.look()
    return [one.text for one in log.said(broker, epoch, NOW_MS)]


def test_each_message_says_its_reason(path: Path) -> None:
    granted = (
        "The request from broker 1 to shut down has been granted since the lowest active offset 20 is now greater than "
        "the broker's controlled shutdown offset 19."
    )
    messages = {
        session(1, 8): Reason.session,
        # Kafka 3.9.
        "Fencing broker 1 because its session has timed out.": Reason.session,
        "Unfenced broker 1 has requested and been granted an immediate shutdown.": Reason.immediate_shutdown,
        "Unfenced broker 1 has requested and been granted a controlled shutdown.": Reason.controlled_shutdown,
        granted: Reason.shutdown_granted,
    }
    path.write_text("".join(map(line, messages)) + line("Unfenced broker 1 has requested and been granted fencing"))
    log = ControllerLog(path)
    log.look()
    said = log.said(1, 8, NOW_MS)
    assert {one.text: one.reason for one in said} == messages
    assert said[-1] == Saying(NOW_MS, Reason.session, 1, 8, session(1, 8))


def test_only_what_is_near_and_of_the_same_broker_counts(path: Path) -> None:
    path.write_text(
        line(session(1, 8)) + line(session(1, 9)) + line(session(2, 8)) + line(session(1, 8), NOW_MS - 60_000)
    )
    assert texts(ControllerLog(path), 1, 8) == [session(1, 8)]


def test_a_line_counts_once_it_is_whole(path: Path) -> None:
    whole = line(session(1, 8))
    log = ControllerLog(path)
    assert texts(log) == [], "no file yet"
    path.write_text(whole[:-20])
    assert texts(log) == []
    with path.open("a") as file:
        file.write(whole[-20:] + line(session(1, 9))[:30])
    assert texts(log) == [session(1, 8)]


def test_a_rotated_log_is_read_to_its_end_and_then_the_new_one(path: Path) -> None:
    log = ControllerLog(path)
    path.write_text(line(session(1, 1)))
    assert texts(log) == [session(1, 1)]
    with path.open("a") as file:
        file.write(line(session(1, 2)))
    path.rename(path.with_suffix(".log.1"))
    path.write_text(line(session(1, 3)))
    assert texts(log) == [session(1, n) for n in (3, 2, 1)]


def test_a_log_that_is_cut_off_is_read_from_its_beginning(path: Path) -> None:
    log = ControllerLog(path)
    path.write_text(line(session(1, 1)) + line("something else"))
    assert texts(log) == [session(1, 1)]
    path.write_text(line(session(1, 2)))
    assert texts(log) == [session(1, 2), session(1, 1)]


def test_little_is_read_of_a_long_history_and_of_long_lines(path: Path) -> None:
    path.write_text(line(session(1, 1)) + line("x" * HISTORY_BYTES) + line(session(1, 2)))
    log = ControllerLog(path)
    assert texts(log) == [session(1, 2)]
    with path.open("a") as file:
        file.write("x" * (LINE_BYTES_MAX + 1))
    log.look()
    with path.open("a") as file:
        file.write(session(1, 3) + "\n" + line(session(1, 4)))
    assert session(1, 4) in texts(log)


def test_lines_without_a_time_count_while_the_log_is_followed(path: Path) -> None:
    path.write_text(session(1, 1) + "\n")
    log = ControllerLog(path)
    log.look()
    with path.open("a") as file:
        file.write(session(1, 2) + "\n")
    log.look()
    assert [one.broker_epoch for one in log.said(1, None, int(time.time() * 1000))] == [2]
