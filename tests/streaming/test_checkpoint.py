"""A checkpoint of another bus, or at another position than its bus, is moved aside; any other stays."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bus.embedded import EmbeddedBus
from streaming.checkpoint import has_batches, settle
from streaming.job_errors import SupersededError
from streaming.watch import check_claim
from tests.support.bus_rows import set_mark


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = new_bus(tmp_path / "bus.db")
    yield bus
    bus.close()


@pytest.fixture
def checkpoint(tmp_path: Path, bus: EmbeddedBus) -> Path:
    """A checkpoint with three decided batches, to seq 4, 7 and 9, and a planned fourth one, to seq 12."""
    checkpoint = tmp_path / "data" / "checkpoint"
    settle(checkpoint, bus, 1)
    write(checkpoint, "metadata", "query")
    for batch, end in enumerate((4, 7, 9, 12)):
        write(checkpoint, f"offsets/{batch}", f'v1\n{{"batchTimestampMs":1}}\n{{"seq": {end}}}')
        if end < 12:
            write(checkpoint, f"commits/{batch}", "v2")
            bus.commit(1, end, [], [])
    return checkpoint


def new_bus(path: Path) -> EmbeddedBus:
    bus = EmbeddedBus(path)
    bus.claim("job", {}, 1)
    bus.publish([b"event"] * 14)
    return bus


def write(checkpoint: Path, name: str, text: str) -> None:
    (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
    (checkpoint / name).write_text(text)


def stays(checkpoint: Path, bus: EmbeddedBus, partitions: int = 1) -> bool:
    """Settle, and return whether the checkpoint stays; if not, check that it is aside and its folder free."""
    before = sorted(path.name for path in checkpoint.rglob("*"))
    settle(checkpoint, bus, partitions)
    if has_batches(checkpoint):
        return True
    assert sorted(path.name for path in checkpoint.with_name("checkpoint.aside").rglob("*")) == before
    assert [path.name for path in checkpoint.iterdir()] == ["bus"]
    settle(checkpoint, bus, partitions)
    return False


def test_a_checkpoint_that_is_as_far_as_its_bus_stays(checkpoint: Path, bus: EmbeddedBus) -> None:
    assert stays(checkpoint, bus)
    (checkpoint / "offsets" / "3").unlink()
    assert stays(checkpoint, bus)


def test_a_checkpoint_whose_last_decided_batch_did_not_end_stays(checkpoint: Path, bus: EmbeddedBus) -> None:
    bus.commit(1, 12, [], [])
    assert stays(checkpoint, bus)


@pytest.mark.parametrize("seq", [10, 11, 13, 5_000])
def test_a_checkpoint_that_fell_behind_its_bus_is_moved_aside(checkpoint: Path, bus: EmbeddedBus, seq: int) -> None:
    bus.commit(1, seq, [], [])
    assert not stays(checkpoint, bus)


@pytest.mark.parametrize("end", [16, 92, 8, 3, -12])
def test_a_checkpoint_with_an_end_that_was_never_planned_is_moved_aside(
    checkpoint: Path, bus: EmbeddedBus, end: int
) -> None:
    """Continuing from an end with a flipped digit would skip events or decide them twice."""
    write(checkpoint, "offsets/3", f'v1\n{{"batchTimestampMs":1}}\n{{"seq": {end}}}')
    assert not stays(checkpoint, bus)


def test_a_checkpoint_whose_last_batch_cannot_be_read_is_moved_aside(checkpoint: Path, bus: EmbeddedBus) -> None:
    bus.commit(1, 12, [], [])
    write(checkpoint, "offsets/2", "")
    assert not stays(checkpoint, bus)


@pytest.mark.parametrize(
    ("name", "text", "damage"),
    [
        ("offsets/2", "", "offsets/2 is missing or cannot be read"),
        ("offsets/3", '{"seq": 3}', "batch 3 ends before the one before it"),
        ("offsets/4", '{"seq": 30}', "batches up to 4 are planned, but only 2 has ended"),
        ("commits/9", "v2", "batch 9 has ended, but was never planned"),
    ],
)
def test_a_damaged_checkpoint_is_called_damaged(
    checkpoint: Path, bus: EmbeddedBus, name: str, text: str, damage: str
) -> None:
    write(checkpoint, name, text)
    with capture_logs() as lines:
        assert not stays(checkpoint, bus)
    assert [line["why"] for line in lines] == [f"it is damaged: {damage}"]


def test_a_checkpoint_that_is_ahead_of_its_bus_is_moved_aside(
    checkpoint: Path, bus: EmbeddedBus, tmp_path: Path
) -> None:
    bus.commit(1, 12, [], [])
    write(checkpoint, "commits/3", "v2")
    set_mark(bus.path, "decided", 9)
    assert not stays(checkpoint, bus)


def test_another_bus_at_the_same_seq_is_not_taken_for_its_own(checkpoint: Path, tmp_path: Path) -> None:
    other = new_bus(tmp_path / "other.db")
    other.commit(1, 9, [], [])
    assert not stays(checkpoint, other)
    other.close()


def test_a_checkpoint_as_far_as_a_restored_bus_stays(checkpoint: Path, bus: EmbeddedBus, tmp_path: Path) -> None:
    bus.close()
    shutil.copy(bus.path, tmp_path / "restored.db")
    restored = EmbeddedBus(tmp_path / "restored.db")
    assert stays(checkpoint, restored)
    restored.close()


@pytest.mark.parametrize("decided", [0, 9, 12])
def test_a_checkpoint_without_a_finished_batch_is_moved_aside(checkpoint: Path, bus: EmbeddedBus, decided: int) -> None:
    shutil.rmtree(checkpoint / "commits")
    bus.commit(1, decided, [], [])
    assert not stays(checkpoint, bus)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("offsets/2", "v1\n"),
        ("offsets/2", '{"isrflow.events": {"0": 9}}'),
        ("offsets/2", "[9]"),
        ("offsets/5", '{"seq": 9}'),
        ("commits/9", "v2"),
        ("bus", ""),
    ],
)
def test_a_nonsensical_checkpoint_is_moved_aside(checkpoint: Path, bus: EmbeddedBus, name: str, text: str) -> None:
    write(checkpoint, name, text)
    assert not stays(checkpoint, bus)


def test_a_checkpoint_that_keeps_shards_in_another_form_is_moved_aside(checkpoint: Path, bus: EmbeddedBus) -> None:
    """isrflow 0.1.0 kept each page by itself, and noted no form."""
    write(checkpoint, "bus", f"{bus.bus_id()}.0")
    assert not stays(checkpoint, bus)


@pytest.mark.parametrize("ended", [0, 3])
def test_a_superseded_job_leaves_the_checkpoint_to_its_successor(
    checkpoint: Path, bus: EmbeddedBus, ended: int
) -> None:
    """Two jobs may share a checkpoint on a cluster's file system. The older one may have stood still after its claim.

    Meanwhile the successor has begun a checkpoint, or has gone on with the one that was there.
    """
    older = bus.claim("older", {}, 1)
    successor = bus.claim("successor", {}, 1)
    for batch in range(ended, 3):
        (checkpoint / "commits" / str(batch)).unlink()
    bus.commit(successor.controller_epoch, 13, [], [])
    before = sorted(checkpoint.rglob("*"))
    with pytest.raises(SupersededError):
        settle(checkpoint, bus, 1, check_held=partial(check_claim, bus, older))
    assert sorted(checkpoint.rglob("*")) == before
    settle(checkpoint, bus, 1, check_held=partial(check_claim, bus, successor))
    assert not has_batches(checkpoint)


def test_one_checkpoint_is_kept_aside(checkpoint: Path, bus: EmbeddedBus) -> None:
    bus.commit(1, 13, [], [])
    write(checkpoint.with_name("checkpoint.aside"), "old", "")
    assert not stays(checkpoint, bus)
    assert len(list(checkpoint.parent.iterdir())) == 2


def test_the_checkpoint_kept_aside_is_replaced(checkpoint: Path, bus: EmbeddedBus) -> None:
    bus.commit(1, 13, [], [])
    checkpoint.with_name("checkpoint.aside").write_text("a file")
    assert not stays(checkpoint, bus)


@pytest.mark.parametrize(("noted", "fits"), [('"1"', True), ('"3"', False), ('"x"', True), ("1", True)])
def test_a_checkpoint_over_another_number_of_partitions_is_moved_aside(
    checkpoint: Path, bus: EmbeddedBus, noted: str, fits: bool
) -> None:
    """A number that cannot be read is no reason to move it."""
    planned = f'{{"conf":{{"spark.sql.shuffle.partitions":{noted}}}}}'
    write(checkpoint, "offsets/3", f'v1\n{planned}\n{{"seq": 12}}')
    assert stays(checkpoint, bus) == fits
