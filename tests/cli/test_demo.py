"""The demo: its arithmetic and its whole story. It leaves nothing behind."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from bus.embedded import EmbeddedBus
from cli.demo.cluster import DemoCluster
from cli.demo.kafka_story import KafkaStory, ZookeeperStory
from cli.demo.screen import draw
from cli.demo.story import FAIL_OVER, TOPIC, MockStory, Story
from cli.demo.traffic import UNKNOWN_OFFSET, Account, Acked, Writer, account
from cli.demo.watch import Watch, WatchedPartition
from state.decisions import AnyDecision
from tests.support.decided_bus import DecidedBus
from tests.support.rooms import ROOMS
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.wheel import build_wheel, install_wheel

COMMAND = [sys.executable, "-c", "from cli import main; main()", "demo"]


def acked(*records: tuple[int, int]) -> dict[int, list[Acked]]:
    return {0: [Acked(offset, number, 0.0) for offset, number in records]}


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ([(0, 10), (1, 11)], Account(2, 2, 0, 0, 0)),
        ([(0, 10), (1, 11), (2, 12)], Account(2, 3, 0, 0, 0)),
        ([(0, 10)], Account(2, 1, 1, 0, 0)),
        ([(0, 10), (1, 12)], Account(2, 2, 1, 0, 0)),
        ([(0, 10), (1, 11), (2, 10)], Account(2, 3, 0, 1, 1)),
        ([], Account(2, 0, 2, 0, 0)),
    ],
)
def test_acknowledged_records_must_be_read_once_at_their_offsets(
    read: list[tuple[int, int]], expected: Account
) -> None:
    made = account(acked((0, 10), (1, 11)), {0: read})
    assert made == expected
    assert made.is_clean == (expected.lost == expected.duplicates == expected.out_of_order == 0)


def test_a_record_of_unknown_offset_must_be_read_somewhere() -> None:
    made = acked((0, 10), (UNKNOWN_OFFSET, 11))
    assert account(made, {0: [(0, 10), (1, 11)]}).is_clean
    assert account(made, {0: [(0, 10), (1, 12)]}).lost == 1


def processes_of(directory: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(directory in part for part in process.info["cmdline"] or []):
            found.append(process)
    return found


def directory_in(line: str) -> str:
    found = re.match(r"Working in ([^;]+);", line)
    assert found, line
    return found[1]


@pytest.mark.parametrize("kind", [MockStory, KafkaStory, ZookeeperStory])
def test_each_story_shows_a_fail_over_in_steps_of_different_names(kind: type[Story]) -> None:
    assert kind.steps[2:7] == FAIL_OVER
    assert len(set(kind.steps)) == len(kind.steps)
    assert kind.opening.endswith("start.")
    assert "session" in kind.detection


def test_a_closed_output_ends_the_story_and_not_only_the_watch(tmp_path: Path) -> None:
    bus = DecidedBus(tmp_path / "bus.db")
    bus.take([b'{"kind":"broker_register","time_ms":1,"broker":1,"incarnation":"a"}'])

    def say(decision: AnyDecision) -> None:
        raise BrokenPipeError

    watch = Watch(bus.bus, TOPIC, lambda: None, object)
    watch.on_decision = say
    watch.start()
    with pytest.raises(BrokenPipeError):
        watch.wait_for("a topic", lambda seen: bool(seen.partitions), TIMEOUT_S)
    watch.stop()
    bus.close()


@pytest.mark.parametrize("kind", [MockStory, KafkaStory, ZookeeperStory])
def test_the_screen_shows_the_story_so_far(kind: type[Story], tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    watch = Watch(bus, TOPIC, lambda: None, object)
    story = kind(DemoCluster(tmp_path, bus.path), watch)  # type: ignore[arg-type]
    story.over("all active after 7 s")
    watch.brokers = {1: "active", 2: "fenced"}
    watch.partitions[0] = WatchedPartition(3, 5, (3, 1), (2, 3, 1), False, 0.0, high_watermark=42)
    console = Console(width=120, record=True)
    console.print(draw(story, watch))
    text = console.export_text()
    assert f"✓  {kind.steps[0]}" in text
    assert f"…  {kind.steps[1]}" in text
    assert "broker 1 active   broker 2 fenced   broker 3 starting" in text
    assert re.search(r"orders +0 +3 +5 +2,3,1 +3,1", text)
    assert ("42" in text) == kind.shows_high_watermarks
    bus.close()


def test_the_longest_wait_counts_records_acknowledged_since_a_time() -> None:
    writer = Writer.__new__(Writer)
    writer.acked = {0: [Acked(0, 0, 1.0, 9.0), Acked(1, 1, 2.0, 0.5), Acked(2, 2, 3.0, 0.7)], 1: []}
    assert writer.longest_wait_s(0, 2.0) == 0.7
    assert writer.longest_wait_s(1, 0.0) == 0.0


@pytest.mark.spark
@pytest.mark.mock_brokers
def test_the_demo_from_a_wheel_loses_no_record_and_leaves_no_process(tmp_path: Path) -> None:
    isrflow = install_wheel(build_wheel(tmp_path), tmp_path / "venv")
    # A user's own modules in the working directory must not be taken for isrflow's.
    for room in ROOMS:
        (tmp_path / f"{room}.py").write_text("raise SystemExit('the wrong module was imported')\n")
    done = subprocess.run([isrflow, "demo", "--plain"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^lost: +0$", done.stdout, re.MULTILINE)
    assert re.search(r"^duplicates: +0$", done.stdout, re.MULTILINE)
    assert len(re.findall(r" \d/8 ", done.stdout)) == 8
    directory = directory_in(done.stdout)
    assert not Path(directory).exists()
    assert processes_of(directory) == []


@pytest.mark.spark
@pytest.mark.mock_brokers
def test_a_demo_stopped_halfway_leaves_no_process() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout
        directory = directory_in(demo.stdout.readline())
        # The engine, Spark's JVM and three brokers.
        wait_until(lambda: len(processes_of(directory)) >= 5, "the demo's processes")
        demo.send_signal(signal.SIGTERM)
        _, said = demo.communicate(timeout=TIMEOUT_S)
    assert (demo.returncode, said) == (130, "\nAborted!\n")
    assert not Path(directory).exists()
    assert processes_of(directory) == []
