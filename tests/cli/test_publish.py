"""Publishing: each line is one event, in order, unchanged."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import MAX_EVENT_BYTES, Decided
from cli.errors import WrongUse
from cli.event_lines import with_time
from cli.publish import EVENTS_PER_TRANSACTION, publish_lines
from tests.cli.conftest import Isrflow
from tests.support.waiting import TIMEOUT_S, wait_until


def published(path: str = "data/bus.db") -> list[bytes]:
    bus = EmbeddedBus(path)
    return [entry.raw for entry in bus.read(0, bus.last_seq())]


def delete(*topics: str) -> str:
    return "".join(f'{{"kind":"delete_topic","time_ms":1,"topic":"{topic}"}}\n' for topic in topics)


def test_lines_become_events_in_order_and_the_last_seq_is_printed(isrflow: Isrflow, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"time_ms":1}\n\n  \nno json\n[1]\n{"time_ms":2}')
    done = isrflow("publish", "events.jsonl", "--create", "--as-is")
    assert (done.exit_code, done.stdout) == (0, "4\n")
    assert published() == [b'{"time_ms":1}', b"no json", b"[1]", b'{"time_ms":2}']


def test_an_event_without_time_gets_one_and_keeps_its_text(isrflow: Isrflow) -> None:
    before = time.time_ns() // 1_000_000
    lines = '{"kind" : "other", "big":12345678901234567890123 }\n{}\n'
    assert isrflow("publish", "-", "--as-is", "--create", text=lines).exit_code == 0
    first, second = published()
    assert first.startswith(b'{"kind" : "other", "big":12345678901234567890123,"time_ms":')
    assert before <= json.loads(first)["time_ms"] <= time.time_ns() // 1_000_000
    assert set(json.loads(second)) == {"time_ms"}


@pytest.mark.parametrize("text", [b"", b"nonsense", b"[]", b"7", b"{", b'{"time_ms":null}', b"\xff{}", b"[" * 5_000])
def test_a_line_with_a_time_or_without_an_object_is_unchanged(text: bytes) -> None:
    assert with_time(text) == text


def test_a_large_file_takes_several_transactions(isrflow: Isrflow, tmp_path: Path) -> None:
    count = 3 * EVENTS_PER_TRANSACTION + 1
    (tmp_path / "events.jsonl").write_text("".join(f'{{"time_ms":{n}}}\n' for n in range(count)))
    assert isrflow("publish", "events.jsonl", "--bus", "other.db", "--create", "--as-is").stdout == f"{count}\n"
    assert published("other.db") == [b'{"time_ms":%d}' % n for n in range(count)]


def test_all_lines_of_a_file_are_checked_before_any_is_published(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    wrong = delete("a") + "no json\n" + '{"kind":"delete_topc","time_ms":1,"topic":"t"}\n{"kind":"delete_topic"}\n'
    for arguments in ((), ("--check",)):
        done = isrflow("publish", "-", *arguments, text=wrong)
        assert done.exit_code == 2
        second, third, fourth = done.stderr.splitlines()
        assert second.startswith("Error: line 2 is not an event: not a JSON object")
        assert third == "line 3 has the unknown kind 'delete_topc' (did you mean 'delete_topic'?)"
        assert fourth.startswith("line 4 is not an event: topic: ")
        assert fourth.endswith("Nothing was published.") == (not arguments)
    assert bus.last_seq() == 6


def test_a_check_publishes_nothing_and_needs_no_bus(isrflow: Isrflow, tmp_path: Path) -> None:
    done = isrflow("publish", "-", "--check", text=delete("a", "b"))
    assert (done.exit_code, done.stdout) == (0, "2 events checked, all of them valid.\n")
    done = isrflow("publish", "-", "--check", text=delete("a"))
    assert (done.exit_code, done.stdout) == (0, "1 event checked, and it is valid.\n")
    assert not (tmp_path / "data").exists()


def test_only_the_first_wrong_lines_are_shown(isrflow: Isrflow) -> None:
    done = isrflow("publish", "-", "--check", text="x\n" * 13)
    assert len(done.stderr.splitlines()) == 11
    assert done.stderr.endswith("... and 3 more.\n")


@pytest.mark.parametrize("arguments", [["-"], ["--check", "-"]])
def test_a_binary_file_is_refused(isrflow: Isrflow, bus: EmbeddedBus, arguments: list[str]) -> None:
    done = isrflow("publish", *arguments, text=bus.path.read_bytes())
    assert done.exit_code == 2
    assert "this is a binary file" in done.stderr
    assert bus.last_seq() == 6


def test_a_missing_bus_is_made_only_on_request(isrflow: Isrflow, tmp_path: Path) -> None:
    done = isrflow("publish", "-", text=delete("a"))
    assert done.exit_code == 3
    assert done.stderr.endswith("'isrflow publish --create' makes a new one.\n")
    assert not (tmp_path / "data").exists()
    assert isrflow("publish", "-", "--create", text=delete("a")).stdout == "1\n"
    assert isrflow("publish", "-", text=delete("b")).stdout == "2\n"


def test_a_line_over_the_limit_is_named(isrflow: Isrflow, bus: EmbeddedBus, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b'{"time_ms":1}\n' + b"x" * (MAX_EVENT_BYTES + 1) + b"\n{}\n")
    done = isrflow("publish", "events.jsonl", "--as-is")
    assert done.exit_code == 2
    assert "line 2 has more than 8388608 bytes" in done.stderr
    assert "up to seq 7" in done.stderr
    assert bus.last_seq() == 7


def test_nothing_to_publish_prints_the_last_seq(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    assert isrflow("publish", "-", text="\n").stdout == "6\n"


def test_publish_prints_its_own_last_seq_and_waits_for_its_own_events(tmp_path: Path) -> None:
    """Others publish at the same time."""

    class Busy(EmbeddedBus):
        def publish(self, events: Sequence[bytes]) -> int:
            last = super().publish(events)
            super().publish([b"somebody else's"])
            return last

    spans: list[range] = []
    with contextlib.closing(Busy(tmp_path / "bus.db")) as bus:
        assert publish_lines(bus, BytesIO(b"{}\n" * 2), spans.append) == 2
        assert publish_lines(bus, BytesIO(b"{}\n"), spans.append) == 4
    assert spans == [range(1, 3), range(4, 5)]


class Piped(BytesIO):
    """A pipe into which each line was written by itself."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.readline()


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"", "Nothing was published."),
        (b'{"kind":"delete_topic","time_ms":1,"topic":"a"}\n', "Earlier lines were published, up to seq 1."),
    ],
)
@pytest.mark.parametrize("second", [b"no json\n", b"a\0b\n"])
def test_a_wrong_line_in_a_pipe_says_what_was_published_before(
    tmp_path: Path, first: bytes, said: str, second: bytes
) -> None:
    def complaint(text: bytes) -> str | None:
        return None if text in first else "is wrong"

    with contextlib.closing(EmbeddedBus(tmp_path / "bus.db")) as bus, pytest.raises(WrongUse) as error:
        publish_lines(bus, Piped(first + second), lambda span: None, complaint)
    assert error.value.message.endswith(said)


@pytest.mark.parametrize("kind", ["tick", "controller_started", "sessions_extended", "leader_imbalance"])
@pytest.mark.parametrize("arguments", [[], ["--as-is"]])
def test_an_event_that_only_the_engine_makes_is_refused_with_its_line(
    isrflow: Isrflow, bus: EmbeddedBus, kind: str, arguments: list[str]
) -> None:
    text = f'{delete("a")}{{"time_ms":2, "kind" : "{kind}" }}\n{delete("b")}'
    done = isrflow("publish", "-", *arguments, text=text)
    assert done.exit_code == 2
    assert f"line 2 is a {kind}, which only the engine makes. Nothing was published." in done.stderr
    assert bus.last_seq() == 6


def test_a_missing_file_is_wrong_use(isrflow: Isrflow) -> None:
    done = isrflow("publish", "gone.jsonl")
    assert done.exit_code == 2
    assert "gone.jsonl" in done.stderr


def test_a_pipe_is_published_as_it_arrives(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    command = [sys.executable, "-c", "from cli import main; main()", "publish", "-", "--bus", str(bus.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin
        for count in (1, 2):
            process.stdin.write(b'{"kind":"delete_topic","topic":"a"}\n{"kind":"delete_topic",')
            process.stdin.write(b'"topic":"b"}\n')
            wait_until(lambda count=count: bus.last_seq() >= 2 * count, "the events to be on the bus")
            assert bus.last_seq() == 2 * count
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert out == b"4\n"


def test_lines_that_were_read_before_are_not_published(tmp_path: Path) -> None:
    """Run a shell, which moves the place in a file that it shares with the commands that it starts."""
    (tmp_path / "events.jsonl").write_text(delete("a", "b", "c"))
    script = '{ read -r first; exec "$0" -m cli publish --create - --bus "$1"; } < "$2"'
    arguments = [sys.executable, str(tmp_path / "bus.db"), str(tmp_path / "events.jsonl")]
    done = subprocess.run(["/bin/sh", "-c", script, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.stderr, done.stdout) == ("", "2\n")
    assert [json.loads(raw)["topic"] for raw in published(str(tmp_path / "bus.db"))] == ["b", "c"]


def decided(bus: EmbeddedBus, *errors: str) -> None:
    """Answer the next events as an engine would; the first event also gets another decision."""
    bus.claim("test", {}, 1)
    bodies = [Decided(8, 0, b'{"kind":"topic"}')]
    for seq, error in enumerate(errors, start=8):
        body = {"kind": "answer", "error": error} if error else {"kind": "rejected"}
        bodies.append(Decided(seq, 1, json.dumps(body).encode()))
    bus.commit(2, 7 + len(errors), bodies, [])


@pytest.mark.parametrize(
    ("errors", "code", "said"),
    [
        (["NONE", "NONE"], 0, ""),
        (["NONE", "TOPIC_ALREADY_EXISTS"], 1, "Error: 1 of the events was refused.\n"),
        (["", ""], 1, "Error: 2 of the events were refused.\n"),
    ],
)
def test_wait_prints_the_answers(isrflow: Isrflow, bus: EmbeddedBus, errors: list[str], code: int, said: str) -> None:
    decided(bus, *errors)
    done = isrflow("publish", "-", "--wait", text=delete("a", "b"))
    assert (done.exit_code, done.stderr) == (code, said)
    seq, *answers = done.stdout.splitlines()
    assert seq == "9"
    assert [json.loads(answer).get("error", "") for answer in answers] == errors


def test_wait_has_a_bound(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    done = isrflow("publish", "-", "--wait", "--timeout-ms", "50", text=delete("a"))
    assert done.exit_code == 3
    assert "seq 7 was not decided within 50 ms, and the engine is at 6" in done.stderr


def test_a_field_of_few_values_is_told_with_them(isrflow: Isrflow, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"kind":"alter_config","time_ms":1,"entity":"topik","config":{}}\n')
    said = isrflow("publish", str(file), "--check").stderr
    assert "entity: Invalid enum value 'topik'; expected one of cluster, topic, broker" in said


def test_what_events_prints_is_no_event_to_publish(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    envelopes = isrflow("events", "--limit", "2").stdout
    told = "is an envelope of 'isrflow events', which only 'isrflow replay' opens: the event is in it"
    done = isrflow("publish", "-", text=envelopes)
    assert (done.exit_code, done.stderr) == (2, f"Error: line 1 {told}\nline 2 {told}. Nothing was published.\n")
    done = isrflow("publish", "-", text='{"topic":"t"}\n{"kind":7}')
    first, second = done.stderr.splitlines()
    assert first == "Error: line 1 has no kind: 'isrflow schema events' describes all kinds of events"
    assert second.startswith("line 2 is not an event: kind: ")
