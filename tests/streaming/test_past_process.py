"""The live page's past: read from a real bus by another process, which may fail or be slow."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bus.clock import now_ms
from sinks.web.past import PastError
from streaming import past_process
from streaming.past_process import PastProcess
from tests.support.decided_bus import DecidedBus
from tests.support.engine import encoded
from tests.support.waiting import TIMEOUT_S, wait_until


@pytest.fixture
def decided(tmp_path: Path) -> Iterator[DecidedBus]:
    made = DecidedBus(tmp_path / "bus.db")
    epoch = made.take([encoded("broker_register", broker=1, incarnation="a")])
    made.take([encoded("broker_heartbeat", broker=1, broker_epoch=epoch, want_fence=False, want_shutdown=False)])
    yield made
    made.close()


def test_the_state_as_it_was_is_read_by_another_process(decided: DecidedBus, tmp_path: Path) -> None:
    before_ms = now_ms()
    wait_until(lambda: now_ms() > before_ms, "the next millisecond")
    decided.take([encoded("create_topic", topic="orders", partitions=4, replication_factor=1)])
    past = PastProcess(str(tmp_path / "bus.db"))
    try:
        then: Any = msgspec.json.decode(past.at(before_ms))
        now: Any = msgspec.json.decode(past.at(now_ms()))
        assert [(one["seq"], one["cluster"]["partitions"]) for one in (then, now)] == [(2, 0), (3, 4)]
        assert now["cluster"]["brokers"][0]["leaders"] == 4
        with pytest.raises(PastError, match="nothing from that time is left"):
            past.at(1)
        why: Any = msgspec.json.decode(past.explain("orders", 0))
        assert why["summary"][0].startswith("orders-0 as of seq 3: ")
        assert why["steps"][0]["seq"] == 3
        with pytest.raises(PastError, match="nothing that is left on the bus is about orders-0"):
            past.explain("orders", 0, 2)
        topic: Any = msgspec.json.decode(past.topic("orders"))
        assert (topic["seq"], topic["partitions"]) == (3, 4)
        # A topic with one replica has no spare one, and nothing is wrong with it.
        assert [row["problems"] for row in topic["rows"]] == [["one_failure_from_offline", "at_min_isr"]] * 4
        with pytest.raises(PastError, match="there is no topic orders"):
            past.topic("orders", 2)
    finally:
        past.close()


def test_a_bus_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    past = PastProcess(str(tmp_path / "none.db"))
    with pytest.raises(PastError, match="the log could not be read"):
        past.at(5)
    past.close()


def test_a_slow_answer_ends_the_process_and_the_next_question_starts_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(past_process, "ANSWER_TIMEOUT_S", 0.2)
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.stdin.read()")
    past = PastProcess("bus", (sys.executable, str(program)))
    with pytest.raises(PastError, match="took longer than"):
        past.at(5)
    monkeypatch.setattr(past_process, "ANSWER_TIMEOUT_S", TIMEOUT_S)
    program.write_text("import sys\nfor line in sys.stdin: print('+1', flush=True)")
    assert [past.at(5), past.at(6)] == [b"1", b"1"]
    past.close()
    with pytest.raises(PastError, match="the engine stops"):
        past.at(5)


def test_closing_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    script = f"import pathlib, sys; pathlib.Path({str(begun)!r}).touch(); sys.stdin.read()"
    never = PastProcess("bus", (sys.executable, "-c", script))
    failed: list[PastError] = []

    def ask() -> None:
        try:
            never.at(5)
        except PastError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(begun.exists, "the process")
    never.close()
    asking.join(TIMEOUT_S)
    assert len(failed) == 1
