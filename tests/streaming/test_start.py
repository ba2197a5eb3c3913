"""How a job starts: a job that cannot run disturbs no other, and a job that is stopped during its start stops."""

import contextlib
import os
import re
import signal
import sys
from pathlib import Path

import psutil
import pytest

from bus.embedded import EmbeddedBus
from streaming.checkpoint_lock import Holder, checkpoint_lock
from tests.support.engine import START_TIMEOUT_S, Engine
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark


def jvm_options(engine: Engine) -> list[str]:
    """Return the command line of the engine's JVM; empty if it does not run yet."""
    for child in psutil.Process(engine.process.pid).children():
        # A child may end at any moment.
        with contextlib.suppress(psutil.Error):
            if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
                return child.cmdline()
    return []


def test_a_job_whose_spark_does_not_start_claims_nothing(tmp_path: Path) -> None:
    engine = Engine(tmp_path, "driver.java.options=-Xms2g")
    try:
        assert engine.wait(START_TIMEOUT_S) == 3
    finally:
        engine.kill()
    said = engine.log.read_text()
    assert "Error: Spark failed: [JAVA_GATEWAY_EXITED]" in said
    assert "Traceback" not in said
    assert EmbeddedBus(tmp_path / "bus.db").claimed_epoch() == 0


def test_a_job_that_is_killed_while_spark_starts_leaves_nothing_in_the_systems_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    engine = Engine(tmp_path)
    wait_until(lambda: jvm_options(engine) != [], "the JVM", START_TIMEOUT_S)
    engine.kill()
    # The next job removes what is in this one.
    assert [left.name for left in temporary.iterdir()] == [f"isrflow-{os.getuid()}"]


def test_a_job_that_is_stopped_while_spark_starts_has_shown_no_secret_and_claims_nothing(tmp_path: Path) -> None:
    engine = Engine(tmp_path, "spark.hadoop.fs.s3a.secret.key=hidden", "spark.executor.memory=3g")
    try:
        wait_until(lambda: jvm_options(engine) != [], "the JVM", START_TIMEOUT_S)
        shown = " ".join(jvm_options(engine))
        assert "hidden" not in shown
        assert "spark.executor.memory=3g" in shown
        # What a killed JVM leaves there is removed by the next job. Nobody would remove it from /tmp.
        (temporary, *_) = re.findall(r"-Djava\.io\.tmpdir=([^\s\"]+)", shown)
        assert Path(temporary).name.startswith("job-")
        assert Path(temporary).is_dir()
        # Like an init system, which signals all processes of the job at once.
        os.killpg(engine.process.pid, signal.SIGTERM)
        assert engine.wait(START_TIMEOUT_S) == 0
    finally:
        engine.kill()
    assert EmbeddedBus(tmp_path / "bus.db").claimed_epoch() == 0
    assert list((tmp_path / "spark-local").iterdir()) == []
    assert not Path(temporary).exists()


def test_a_job_is_stopped_although_sparks_jvm_does_not_answer(tmp_path: Path) -> None:
    engine = Engine(tmp_path, "log.format=json")
    try:
        wait_until(lambda: jvm_options(engine) != [], "the JVM", START_TIMEOUT_S)
        for child in psutil.Process(engine.process.pid).children(recursive=True):
            child.suspend()
        assert engine.stop() == 0
    finally:
        engine.kill()
    last = engine.log.read_text().splitlines()[-1]
    assert '"event": "stopping"' in last
    assert EmbeddedBus(tmp_path / "bus.db").claimed_epoch() == 0
    assert list((tmp_path / "spark-local").iterdir()) == []


# Imports a module for as long as it takes.
SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, path, target=None):
        if name == "NAME":
            print("importing", flush=True)
            time.sleep(600)
sys.meta_path.insert(0, Slow())
from cli import main
main()
"""


def importing(name: str, tmp_path: Path) -> Engine:
    command = (sys.executable, "-c", SLOW_IMPORT.replace("NAME", name), "run")
    engine = Engine(tmp_path, "log.format=json", command=command)
    wait_until(lambda: "importing" in engine.log.read_text(), "the import", START_TIMEOUT_S)
    return engine


def test_a_job_is_stopped_before_its_command_is_imported(tmp_path: Path) -> None:
    assert importing("cli.run", tmp_path).stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_job_is_stopped_while_spark_is_imported(tmp_path: Path, number: int) -> None:
    engine = importing("pyspark", tmp_path)
    try:
        engine.process.send_signal(number)
        assert engine.wait() == 0
    finally:
        engine.kill()
    assert '"event": "stopping"' in engine.log.read_text().splitlines()[-1]
    assert not (tmp_path / "bus.db").exists()


def test_a_job_that_is_stopped_while_it_waits_for_the_checkpoint_stops(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    with checkpoint_lock(tmp_path / "checkpoint", Holder.of(bus, "bus.db")) as lock:
        assert lock.take()
        engine = Engine(tmp_path, "takeover.timeout.ms=600000")
        try:
            wait_until(lambda: bus.claimed_epoch() == 1, "the claim", START_TIMEOUT_S)
            assert engine.stop() == 0
        finally:
            engine.kill()
    assert bus.decided_seq() == 0
    bus.close()
