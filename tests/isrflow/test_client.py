"""The package for users' programs publishes events and reads decisions, on both kinds of bus.

The buses on Kafka are on the node of ``kafka_servers``.
"""

import itertools
import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import isrflow
from bus.embedded import EmbeddedBus
from bus.interface import AFTER_ALL_OF
from bus.open_bus import open_bus
from isrflow.client import BEGINNING, Client
from isrflow.contract import Decided
from tests.support.decided_bus import DecidedBus
from tests.support.trimming import trim
from tests.support.waiting import TIMEOUT_S

REGISTER = {"kind": "broker_register", "broker": 1, "incarnation": "a"}
CREATE = {"kind": "create_topic", "topic": "t", "partitions": 2, "replication_factor": 1}


def heartbeat(epoch: int) -> dict[str, Any]:
    return {
        "kind": "broker_heartbeat",
        "broker": 1,
        "broker_epoch": epoch,
        "want_fence": False,
        "want_shutdown": False,
    }


def test_a_program_registers_a_broker_and_reads_what_is_decided(decided_url: str) -> None:
    with isrflow.connect(decided_url) as bus:
        registered = bus.ask(REGISTER)
        assert (registered["kind"], registered["error"]) == ("answer", "NONE")
        assert registered["broker_epoch"] == registered["seq"]
        assert bus.publish(heartbeat(registered["broker_epoch"]))
        created = bus.ask({**CREATE, "request_id": 7})
        assert (created["request_id"], created["error"]) == (7, "NONE")
        led = list(itertools.islice(bus.decisions(kinds=["leader_and_isr"], wait_s=TIMEOUT_S), 2))
        assert [(one["partition"], one["leader"]) for one in led] == [(0, 1), (1, 1)]
        assert [one["kind"] for one in bus.decisions_on(created["seq"])][-1] == "answer"
        after = (led[-1]["seq"], led[-1]["index"])
        assert all((one["seq"], one["index"]) > after for one in bus.decisions(after))
        assert bus.newest() >= after
        assert list(bus.decisions((bus.newest()[0], AFTER_ALL_OF), kinds=["answer"])) == []
        whole = [(one["seq"], one["index"]) for one in bus.decisions()]
        assert whole == sorted(set(whole))


def test_a_forked_process_is_refused_its_parents_connection_to_kafka(kafka_url: str) -> None:
    open_bus(kafka_url).close()
    with isrflow.connect(kafka_url) as bus:
        refused, refuse = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                bus.publish(REGISTER)
            except isrflow.BusError as error:
                os.write(refuse, str(error).encode())
            bus.close()
            os._exit(0)
        os.close(refuse)
        with open(refused) as said:
            assert said.read().endswith("forked after it connected: connect in the child")
        os.waitpid(child, 0)
        assert bus.publish(REGISTER) is not None, "the parent's connection is as it was"


def test_a_closed_bus_stays_closed_and_ends_those_who_follow_it(decided_url: str) -> None:
    bus = isrflow.connect(decided_url)
    bus.ask(REGISTER)
    following, ends = threading.Event(), []

    def follow() -> None:
        try:
            for _ in bus.decisions(wait_s=math.inf):
                following.set()
        except isrflow.BusError as error:
            ends.append(str(error))

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    assert following.wait(TIMEOUT_S)
    bus.close()
    follower.join(TIMEOUT_S)
    assert ["this program has closed it" in end for end in ends] == [True]
    for use in (bus.newest, lambda: bus.publish(REGISTER), lambda: next(bus.decisions()), lambda: bus.ask(REGISTER)):
        with pytest.raises(isrflow.BusError, match="this program has closed it"):
            use()
    bus.close()


def test_a_refused_and_a_malformed_request_are_answered(decided_url: str) -> None:
    with isrflow.connect(decided_url) as bus:
        assert bus.ask({"kind": "delete_topic", "topic": "t"})["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
        malformed = bus.ask({"kind": "delete_topic", "topic": 7})
        assert (malformed["error"], malformed["message"]) == ("INVALID_REQUEST", "topic: Expected `str`, got `int`")
        late = bus.ask({"kind": "delete_topic", "topic": "t", "time_ms": 2**53})
        assert (late["error"], late["message"].split(" ")[:2]) == ("INVALID_REQUEST", ["time_ms:", "it"])
        assert bus.ask({"kind": "delete_topic", "topic": "t", "request_id": []})["field"] == "request_id"


def test_a_report_of_a_log_end_is_answered_if_it_is_asked(decided_url: str) -> None:
    report = {"kind": "log_end_offset", "topic": "t", "partition": 0, "broker": 1, "leader_epoch": 0}
    with isrflow.connect(decided_url) as bus:
        assert bus.ask({**report, "log_end_offset": 5})["error"] == "BROKER_ID_NOT_REGISTERED"


def test_nobody_may_publish_what_only_the_engine_makes(decided_url: str) -> None:
    with isrflow.connect(decided_url) as bus, pytest.raises(isrflow.EngineOnlyError, match="a tick, which only"):
        bus.publish({"kind": "tick"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    EmbeddedBus(tmp_path / "bus.db").close()
    return tmp_path / "bus.db"


def test_nothing_is_left_open_after_close_however_late_it_is_used(path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    bus = isrflow.connect(str(path))
    first, last = threading.Event(), threading.Event()
    reader = threading.Thread(target=lambda: (bus.newest(), first.set(), last.wait()), daemon=True)
    reader.start()
    assert first.wait(TIMEOUT_S)
    bus.close()
    with pytest.raises(isrflow.BusError, match="has closed it"):
        bus.newest()
    last.set()
    reader.join(TIMEOUT_S)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_an_answer_that_never_comes_is_an_error(path: Path) -> None:
    with isrflow.connect(str(path)) as bus:
        with pytest.raises(isrflow.NoAnswerError, match=r"no answer to event 1 in 0\.1 s: is an engine running"):
            bus.ask(REGISTER, timeout_s=0.1)
        assert bus.publish(REGISTER) == 2, "the request stays published"


class FlowingLog:
    """A log on which another decision stands at each look, up to a number that no wait of a test reaches."""

    def __init__(self) -> None:
        self._decided = 0

    def publish(self, events: Sequence[bytes]) -> int:
        return 1

    def newest_decision(self) -> tuple[int, int]:
        return BEGINNING

    def thinned(self) -> tuple[int, int]:
        return BEGINNING

    def decisions(self, after: tuple[int, int], limit: int, *, passing_over: bool) -> list[Decided]:
        self._decided += 1
        assert self._decided < 100_000, "the time-out has long passed"
        return [Decided(1, self._decided, b'{"kind":"no_op","seq":1,"index":%d}' % self._decided)]

    def wait(self, timeout_s: float) -> None:
        raise AssertionError("there is always another decision")

    def blocker(self) -> str:
        return ""

    def close(self) -> None:
        pass


def test_other_decisions_do_not_make_the_wait_for_an_answer_longer() -> None:
    with Client(FlowingLog()) as bus, pytest.raises(isrflow.NoAnswerError, match=r"no answer to event 1 in 0\.05 s"):
        bus.ask(REGISTER, timeout_s=0.05)


@pytest.mark.parametrize("event", [{}, {"kind": 7}, ["kind"], "kind", {"kind": "tick", "x": object()}])
def test_what_is_no_event_is_not_published(path: Path, event: Any) -> None:
    with isrflow.connect(f"sqlite:{path}") as bus:
        with pytest.raises(ValueError, match="event 2"):
            bus.publish(REGISTER, event)
        assert bus.publish(REGISTER) == 1


def test_a_missing_bus_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(isrflow.NoBusError, match="start the engine"):
        isrflow.connect(str(tmp_path / "bus.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_place_may_come_back_from_json(path: Path) -> None:
    with isrflow.connect(str(path)) as bus:
        for place in ((0, -1), [0, -1], (3, 4), [3, 4], (2**70, 0)):
            assert list(bus.decisions(place)) == []
        assert bus.decisions_on(2**63) == []


@pytest.mark.parametrize("place", [None, 5, "50", (None, 0), ("5", 0), (5.0, 0), (5,), [1, 2, 3], True])
def test_what_is_no_place_is_an_error_that_says_what_is(path: Path, place: Any) -> None:
    with (
        isrflow.connect(str(path)) as bus,
        pytest.raises(ValueError, match=r"is not a place: expected two whole numbers, \(seq, index\)"),
    ):
        bus.decisions(place)


@pytest.mark.parametrize("url", ["kafka://", "kafka://host", "kafka://host:1/a/b"])
def test_a_malformed_url_is_an_error(url: str) -> None:
    with pytest.raises(isrflow.BusError, match="is not a bus on Kafka: expected kafka://host:port"):
        isrflow.connect(url)


@pytest.mark.parametrize("url", ["kafak://host:1", "KAFKA://host:1", "http://me:canary@host/bus"])
def test_a_url_of_something_else_is_not_taken_for_a_path(url: str) -> None:
    for open_it in (isrflow.connect, open_bus):
        with pytest.raises(isrflow.BusError, match=r"is not a bus: expected a path, sqlite:PATH or kafka://") as caught:
            open_it(url)
        assert "canary" not in str(caught.value)


def test_removed_decisions_are_noticed(tmp_path: Path) -> None:
    held = DecidedBus(tmp_path / "bus.db")
    for number in range(4):
        held.take([msgspec.json.encode({**REGISTER, "broker": number, "time_ms": 1})])
    held.bus.passed(4)
    while trim(held.bus, 1):
        pass
    with isrflow.connect(str(tmp_path / "bus.db")) as bus:
        assert {one["seq"] for one in bus.decisions(BEGINNING)} == {4}
        with pytest.raises(isrflow.TrimmedError, match="read on from"):
            list(bus.decisions((1, 0)))


def test_a_reader_from_the_beginning_gets_all_that_thinning_has_left(tmp_path: Path) -> None:
    held = DecidedBus(tmp_path / "bus.db")
    events = [REGISTER, heartbeat(1), {**CREATE, "partitions": 1_100}, {"kind": "tick", "controller_epoch": 0}]
    for event in events:
        last = held.take([msgspec.json.encode({**event, "time_ms": 1})])
    held.bus.passed(last)
    while held.bus.thin(last):
        pass
    with isrflow.connect(str(tmp_path / "bus.db")) as bus:
        whole = list(bus.decisions())
        assert [one["kind"] for one in whole if one["seq"] == 1] == ["broker", "answer"]
        assert sum(one["kind"] == "leader_and_isr" for one in whole) == 1_100, "they are more than one read brings"
        with pytest.raises(isrflow.TrimmedError):
            list(bus.decisions((1, 0)))
