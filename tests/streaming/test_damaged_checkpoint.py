"""If any file of a real checkpoint is damaged, the job continues from the bus: nothing twice, nothing missing.

One log and one Spark session serve all kinds of damage, one after another. Each is done to the checkpoint that the
previous query left.
"""

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from conf.settings import Settings
from sinks.decision_log import DecisionLog
from streaming.checkpoint import has_batches, settle
from streaming.decider import Decider
from tests.support.engine import by_rules, decisions_of, encoded
from tests.support.random_logs import seeded
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark_session")]

EVENTS_A_BATCH = 10
OTHERWISE = b" "


class Log:
    """A bus, its checkpoint, and a random log whose events are published a few at a time."""

    def __init__(self, session: SparkSession, directory: Path) -> None:
        self.bus = EmbeddedBus(directory / "bus.db")
        self.checkpoint = directory / "checkpoint"
        self.aside = directory / "checkpoint.aside"
        self._session = session
        self._events = [raw for _, raw in seeded(seed=17, count=600)]
        self._sent = 0
        self._settings = Settings(bus=f"sqlite:{self.bus.path}", checkpoint_dir=str(self.checkpoint), shards=2, pages=3)
        self._epoch = self.bus.claim("job", {}, 1).controller_epoch

    def decide(self, batches: int) -> None:
        """Decide some batches as the job does, from the checkpoint if it is good, or else from the bus."""
        settle(self.checkpoint, self.bus, self._settings.shuffle_partitions)

        def write(outcomes: object) -> None:
            DecisionLog(self.bus, self._epoch).write(outcomes)  # type: ignore[arg-type]

        with Decider(self._session, self.bus, self._settings, write) as decider:
            for _ in range(batches):
                some = self._events[self._sent : self._sent + EVENTS_A_BATCH]
                self._sent += len(some)
                last = self.bus.publish_own([*some, encoded("tick")])

                def is_decided(last: int = last) -> bool:
                    if not decider.is_active():
                        decider.go_on()
                    return self.bus.decided_seq() >= last

                wait_until(is_decided, f"event {last}")

    def newest(self, pattern: str) -> Path:
        return max(self.checkpoint.glob(pattern), key=lambda path: path.stat().st_mtime_ns)

    def number(self, log: str) -> int:
        return max(int(path.name) for path in (self.checkpoint / log).glob("[0-9]*"))


def flip(file: Path, at: int = -1) -> None:
    """Flip one bit, by default in the middle."""
    body = bytearray(file.read_bytes())
    body[at if at >= 0 else len(body) // 2] ^= 4
    file.write_bytes(body)


def offsets(log: Log) -> None:
    flip(log.newest("offsets/[0-9]*"), at=0)


def commits(log: Log) -> None:
    flip(log.newest("commits/[0-9]*"), at=4)


def hadoop_checksum(log: Log) -> None:
    """Damage the checksum that Hadoop keeps beside a file when it writes files in pure Java."""
    flip(log.newest("offsets/.*.crc"))


def metadata(log: Log) -> None:
    (log.checkpoint / "metadata").write_bytes(b"")


def changelog(log: Log) -> None:
    flip(log.newest("state/0/0/*.changelog"))


def operator_metadata(log: Log) -> None:
    flip(log.newest("state/0/_metadata/v2/[!.]*"), at=0)


def schema(log: Log) -> None:
    log.newest("state/0/_stateSchema/*/[!.]*").write_bytes(b"")


def all_of_the_state(log: Log) -> None:
    """Damage the snapshots too, because Spark rebuilds a damaged one from earlier files."""
    for file in log.checkpoint.glob("state/0/0/*[!c]"):
        if file.is_file():
            flip(file)


def another_version(log: Log) -> None:
    """Make it look as if another version, which decided otherwise, was killed between the bus's commit and Spark's."""
    ended = log.number("commits")
    (log.checkpoint / "commits" / str(ended)).unlink()
    before = json.loads((log.checkpoint / "offsets" / str(ended - 1)).read_text().splitlines()[-1])["seq"]
    connection = sqlite3.connect(log.bus.path)
    connection.create_function("crc32", 1, zlib.crc32)
    with connection:
        other = (
            "UPDATE decisions SET body = CAST(body || ?1 AS BLOB), crc = crc32(CAST(body || ?1 AS BLOB)) WHERE seq > ?2"
        )
        assert connection.execute(other, (OTHERWISE, before)).rowcount > 0
    connection.close()


DAMAGE: tuple[Callable[[Log], None], ...] = (
    offsets,
    commits,
    hadoop_checksum,
    metadata,
    changelog,
    operator_metadata,
    schema,
    all_of_the_state,
    another_version,
)


def test_damage_costs_the_checkpoint_and_nothing_else(spark_session: SparkSession, tmp_path: Path) -> None:
    log = Log(spark_session, tmp_path)
    log.decide(batches=3)
    for damage in DAMAGE:
        assert has_batches(log.checkpoint)
        damage(log)
        before = decisions_of(log.bus)
        shutil.rmtree(log.aside, ignore_errors=True)
        # Two batches, so that the newest state is a delta on a snapshot, and there is a batch before the newest one.
        log.decide(batches=2)
        assert has_batches(log.aside), f"{damage.__name__}: the job continued from the damaged checkpoint"
        # Written decisions stay, even where the rules would decide otherwise now.
        assert decisions_of(log.bus)[: len(before)] == before
    written = decisions_of(log.bus)
    assert any(body.endswith(OTHERWISE) for _, _, body in written)
    expected = by_rules(log.bus)
    assert [(seq, index, body.removesuffix(OTHERWISE)) for seq, index, body in written] == expected.decisions
    assert view_of_image(log.bus.image()) == expected.view()
    log.bus.close()
