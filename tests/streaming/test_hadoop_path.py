"""A checkpoint that is a URI is read, moved aside and refused through Hadoop."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from conf.settings import Settings
from streaming.checkpoint import BUS_FILE, has_batches, settle
from streaming.checkpoint_place import check_usable, checkpoint_of, files_place
from streaming.hadoop_path import HadoopPath
from streaming.job_errors import JobError
from tests.support.engine import START_TIMEOUT_S, Engine

PLANNED = 'v1\n{"conf":{"spark.sql.shuffle.partitions":"3"}}\n{"seq":%d}'


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.claim("job", {}, 1)
    bus.publish([b"event"] * 9)
    bus.commit(1, 5, [], [])
    yield bus
    bus.close()


@pytest.fixture
def checkpoint(tmp_path: Path) -> HadoopPath:
    found = checkpoint_of(Settings(checkpoint_dir=(tmp_path / "checkpoint").as_uri()))
    assert isinstance(found, HadoopPath)
    return found


def write_batch(checkpoint: Path, end: int) -> None:
    """Write the logs of one batch as Spark does."""
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        (checkpoint / log / "0").write_text(PLANNED % end)


def test_what_is_no_uri_is_a_path_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert checkpoint_of(Settings(checkpoint_dir="C:/x")) == tmp_path / "C:" / "x"
    settings = Settings(bus="kafka://a:9092/b", checkpoint_dir="hdfs://n/c")
    assert str(checkpoint_of(settings)) == "hdfs://n/c"
    assert files_place(settings).parent == tmp_path / "data"


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
@pytest.mark.xdist_group("spark_session")
def test_a_checkpoint_on_a_uri_is_settled_like_one_on_a_path(
    bus: EmbeddedBus, checkpoint: HadoopPath, tmp_path: Path
) -> None:
    here, aside = tmp_path / "checkpoint", tmp_path / "checkpoint.aside"
    check_usable(checkpoint)
    assert list(tmp_path.glob("*probe*")) == []
    settle(checkpoint, bus, partitions=3)
    assert (here / BUS_FILE).read_text() == f"{bus.bus_id()}.0.2"
    assert not has_batches(checkpoint)
    write_batch(here, 5)
    settle(checkpoint, bus, partitions=3)
    assert has_batches(checkpoint)
    for end, partitions in ((8, 3), (5, 2)):
        write_batch(here, end)
        settle(checkpoint, bus, partitions)
        assert not has_batches(checkpoint)
        assert (aside / "commits" / "0").read_text() == PLANNED % end


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
@pytest.mark.xdist_group("spark_session")
def test_a_checkpoint_of_another_bus_and_one_that_cannot_be_written_are_refused(
    bus: EmbeddedBus, checkpoint: HadoopPath, tmp_path: Path
) -> None:
    here = tmp_path / "checkpoint"
    write_batch(here, 5)
    (here / BUS_FILE).write_text("7")
    with pytest.raises(JobError, match=r"checkpoint belongs to another bus: name another one in checkpoint\.dir"):
        settle(checkpoint, bus, partitions=3)
    assert has_batches(checkpoint)
    # It may have been made a moment ago, and its first batch has not ended.
    shutil.rmtree(here / "commits")
    with pytest.raises(JobError, match="belongs to another bus"):
        settle(checkpoint, bus, partitions=3)
    assert (here / BUS_FILE).read_text() == "7"
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        check_usable(HadoopPath((tmp_path / "file" / "checkpoint").as_uri()))


@pytest.mark.spark
def test_a_job_with_the_checkpoint_of_another_bus_ends_before_it_claims(tmp_path: Path) -> None:
    """Otherwise it would stop the engine of its bus, and then itself."""
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.claim("active", {}, 1)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / BUS_FILE).write_text("7")
    engine = Engine(tmp_path, f"checkpoint.dir={(tmp_path / 'shared').as_uri()}")
    try:
        assert engine.wait(START_TIMEOUT_S) == 3
    finally:
        engine.kill()
    assert "shared belongs to another bus" in engine.log.read_text()
    assert bus.claimed_epoch() == 1
    bus.close()
