"""A state in other shards and pages: nothing is lost whenever the command dies, and no old checkpoint is used.

``test_takeover.py`` has engines that reshard as they take over.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import DivergedError, Entry, FencedError, Image
from bus.kafka.mark import Mark, newer
from bus.open_bus import open_bus
from cli.commands import command
from conf.layers import SettingsError
from conf.settings import Settings
from controller_logic.replay import decide
from state.policy import Policy
from streaming.checkpoint import BUS_FILE, settle
from streaming.checkpoint_lock import Holder, checkpoint_lock
from streaming.layout import misfit
from streaming.layout_check import LayoutCheck
from streaming.reshard import reshard
from tests.support.commits import readable
from tests.support.engine import decisions_of, encoded
from tests.support.operators import PAGES, SHARDS, OperatorCluster
from tests.support.random_logs import seeded
from tests.support.waiting import TIMEOUT_S, wait_until

LOG = seeded(seed=22, count=800)
HALF = 400
OTHER_SHARDS, OTHER_PAGES = 7, 2
SETS = ("--set", f"shards={OTHER_SHARDS}", "--set", f"pages={OTHER_PAGES}")


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    """A bus on which the first half of a log is decided."""
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.load([Entry(*entry) for entry in LOG[:HALF]])
    OperatorCluster(bus).batch(LOG[:HALF])
    yield bus
    bus.close()


def settings_of(bus: EmbeddedBus, shards: int = OTHER_SHARDS, pages: int = OTHER_PAGES) -> Settings:
    return Settings(bus=f"sqlite:{bus.path}", shards=shards, pages=pages, metrics_port=-1)


def test_nothing_is_lost_and_later_decisions_are_the_same(bus: EmbeddedBus) -> None:
    before = view_of_image(bus.image())
    done = reshard(bus, settings_of(bus))
    assert done is not None
    assert (done.shards_before, done.topics) == (SHARDS, len({one["topic"] for one in before["partitions"]}))
    assert view_of_image(bus.image()) == before
    assert misfit(bus.image(), settings_of(bus)) is None
    assert misfit(bus.image(), settings_of(bus, SHARDS, PAGES)) is not None
    OperatorCluster(bus, shards=OTHER_SHARDS, pages=OTHER_PAGES, controller_epoch=1, image=bus.image()).batch(
        LOG[HALF:]
    )
    expected = decide(LOG, Policy())
    assert decisions_of(bus) == expected.decisions
    assert view_of_image(bus.image()) == expected.view()


def test_a_state_that_fits_is_left_alone(bus: EmbeddedBus) -> None:
    assert reshard(bus, settings_of(bus, SHARDS, PAGES)) is None
    assert (bus.claimed_epoch(), bus.layouts()) == (0, 0)
    empty = EmbeddedBus(bus.path.with_name("empty.db"))
    assert reshard(empty, settings_of(empty)) is None
    empty.close()


def test_a_running_engine_is_not_disturbed(bus: EmbeddedBus) -> None:
    checkpoint = bus.path.with_name("bus.db.checkpoint")
    with checkpoint_lock(checkpoint, Holder.of(bus, "bus.db")) as lock:
        assert lock.take()
        done = CliRunner().invoke(command, ["reshard", "--bus", str(bus.path), *SETS])
    assert done.exit_code == 1
    assert "an engine of this machine runs on " in done.output
    assert bus.claimed_epoch() == 0


def test_an_engine_that_starts_meanwhile_keeps_its_state(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bus.image()
    claims_before = bus.claimed_epoch()

    def image() -> Image:
        found = EmbeddedBus.image(bus)
        # Right after reshard has claimed and read the state.
        if bus.claimed_epoch() == claims_before + 1:
            bus.claim("engine", {}, 1)
        return found

    monkeypatch.setattr(bus, "image", image)
    with pytest.raises(FencedError):
        reshard(bus, settings_of(bus))
    assert EmbeddedBus.image(bus) == before


def test_an_image_of_another_moment_is_refused(bus: EmbeddedBus) -> None:
    before = bus.image()
    with pytest.raises(DivergedError, match=f"is at seq {before.seq}, not {before.seq - 1}"):
        bus.replace_image(0, before._replace(seq=before.seq - 1))
    assert bus.image() == before


def test_an_engine_whose_layout_was_checked_too_early_does_not_decide(bus: EmbeddedBus) -> None:
    layout = LayoutCheck(bus, settings_of(bus, SHARDS, PAGES))
    layout.claimed(bus.claim("first", {}, 1))
    assert reshard(bus, settings_of(bus)) is not None
    with pytest.raises(SettingsError, match=f"shards is {SHARDS}, .* set shards = {OTHER_SHARDS}"):
        layout.claimed(bus.claim("again", {}, 1))


def test_an_engine_that_is_told_to_reshard_does_so_after_its_claim(bus: EmbeddedBus) -> None:
    before = bus.image()
    layout = LayoutCheck(bus, settings_of(bus), reshards=True)
    assert bus.image() == before
    layout.claimed(bus.claim("first", {}, 1))
    assert misfit(bus.image(), settings_of(bus)) is None
    assert view_of_image(bus.image()) == view_of_image(before)
    layout.claimed(bus.claim("again", {}, 1))
    assert bus.layouts() == 1


def test_an_engine_that_is_overtaken_does_not_reshard(bus: EmbeddedBus) -> None:
    before = bus.image()
    layout = LayoutCheck(bus, settings_of(bus), reshards=True)
    claim = bus.claim("first", {}, 1)
    bus.claim("second", {}, 1)
    with pytest.raises(FencedError):
        layout.claimed(claim)
    assert (bus.image(), bus.layouts()) == (before, 0)


def test_a_checkpoint_from_before_is_moved_aside(bus: EmbeddedBus, tmp_path: Path) -> None:
    bus.claim("engine", {}, 1)
    checkpoint = tmp_path / "checkpoint"
    settle(checkpoint, bus, 1)
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir()
        (checkpoint / log / "0").write_text(f'v1\n{{}}\n{{"seq":{bus.decided_seq()}}}')
    settle(checkpoint, bus, 1)
    assert (checkpoint / "commits" / "0").exists()
    assert reshard(bus, settings_of(bus)) is not None
    settle(checkpoint, bus, 1)
    assert not (checkpoint / "commits").exists()
    assert (tmp_path / "checkpoint.aside" / "commits" / "0").exists()
    assert (checkpoint / BUS_FILE).read_text() == f"{bus.bus_id()}.1.2"


# Where the command dies: after its claim, in the middle of its transaction, after it.
DYING = """
import os, signal, sys
from bus import embedded, page_table
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
point, *arguments = sys.argv[1:]
if point == "claimed":
    embedded.EmbeddedBus.replace_image = die
if point == "deleted":
    page_table.write_pages = die
if point == "written":
    embedded.EmbeddedBus._set_mark = die
if point == "committed":
    replace = embedded.EmbeddedBus.replace_image
    embedded.EmbeddedBus.replace_image = lambda *a: (replace(*a), die())
from cli.commands import command
command(["reshard", *arguments])
"""


@pytest.mark.parametrize("point", ["claimed", "deleted", "written", "committed"])
def test_a_killed_command_leaves_the_old_state_or_the_new_one_whole(bus: EmbeddedBus, point: str) -> None:
    before = bus.image()
    arguments = [sys.executable, "-P", "-c", DYING, point, "--bus", str(bus.path), *SETS]
    done = subprocess.run(arguments, capture_output=True, timeout=TIMEOUT_S, env=os.environ)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert view_of_image(bus.image()) == view_of_image(before)
    if point == "committed":
        assert misfit(bus.image(), settings_of(bus)) is None
    else:
        assert (bus.image(), bus.layouts()) == (before, 0)
    assert (reshard(bus, settings_of(bus)) is None) == (point == "committed")
    assert bus.layouts() == 1


# Where the command dies on Kafka: after its claim, with everything sent and nothing committed, after the commit.
DYING_ON_KAFKA = """
import os, signal, sys
from bus.kafka import bus, transaction
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
point, *arguments = sys.argv[1:]
replace = bus.KafkaBus.replace_image
if point == "claimed":
    bus.KafkaBus.replace_image = die
if point == "sent":
    def replace_image(*arguments):
        transaction.Transaction.end = lambda begun: (begun.flush(), die())
        replace(*arguments)
    bus.KafkaBus.replace_image = replace_image
if point == "committed":
    bus.KafkaBus.replace_image = lambda *arguments: (replace(*arguments), die())
from cli.commands import command
command(["reshard", *arguments])
"""


@pytest.mark.kafka_bus
@pytest.mark.parametrize("point", ["claimed", "sent", "committed"])
def test_a_killed_command_leaves_the_old_state_or_the_new_one_whole_on_kafka(
    kafka_url: str, tmp_path: Path, point: str
) -> None:
    bus = open_bus(kafka_url)
    epoch = bus.claim("engine", {}, 1).controller_epoch
    bus.publish([encoded("broker_register", broker=1, incarnation="a")])
    bus.publish([encoded("create_topic", topic=name, assignment={"0": [1]}) for name in "abcdefgh"])
    OperatorCluster(bus, controller_epoch=epoch).batch(bus.read(0, bus.last_seq()))
    readable(bus.last_seq(), bus)
    before = bus.image()
    assert len(before.pages) > SHARDS, "some topics are there"
    settings = Settings(
        bus=kafka_url, shards=OTHER_SHARDS, pages=OTHER_PAGES, checkpoint_dir=str(tmp_path / "checkpoint")
    )
    arguments = ["--bus", kafka_url, *SETS, "--set", f"checkpoint.dir={settings.checkpoint_dir}"]
    killed = [sys.executable, "-P", "-c", DYING_ON_KAFKA, point, *arguments]
    done = subprocess.run(killed, capture_output=True, timeout=TIMEOUT_S, env=os.environ)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert bus.claimed_epoch() == epoch + 1
    if point == "committed":
        wait_until(lambda: misfit(bus.image(), settings) is None, "the new image to be readable")
        assert view_of_image(bus.image()) == view_of_image(before)
    else:
        assert (bus.image(), bus.layouts()) == (before, 0)
    assert (reshard(bus, settings) is None) == (point == "committed")
    wait_until(lambda: misfit(bus.image(), settings) is None, "the new image to be readable")
    assert (view_of_image(bus.image()), bus.layouts()) == (view_of_image(before), 1)
    bus.close()


def test_of_two_marks_of_one_epoch_the_one_with_more_layouts_is_newer() -> None:
    mark = Mark(controller_epoch=2, through=5)
    assert newer(mark, replace(mark, layouts=1)).layouts == newer(replace(mark, layouts=1), mark).layouts == 1
