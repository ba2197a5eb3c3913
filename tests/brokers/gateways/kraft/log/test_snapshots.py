"""Snapshots of the metadata log: when they are taken, what is trimmed then, and which fetches get them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.log.snapshots import SnapshotId
from brokers.gateways.kraft.log.storage import Storage
from brokers.gateways.kraft.messages import decode_message
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.wire.record_batch import decode_batches
from tests.brokers.gateways.kraft.storages import BEGINNING, event, follow, gateway, opened, story, topic, whole
from tests.support.decided_bus import DecidedBus

INTERVAL_BYTES = 800


def with_snapshots(directory: Path, decided: DecidedBus) -> Iterator[Storage]:
    """Start a storage for every two events, so that each snapshot that is due is taken soon."""
    while True:
        storage = opened(directory, decided.bus, snapshot_interval_bytes=INTERVAL_BYTES)
        before = storage.decided_seq
        follow(storage, decided.bus, through=before + 2)
        yield storage
        storage.close()
        if storage.decided_seq == decided.bus.decided_seq():
            return


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != ".lock")


def test_two_snapshots_are_kept_and_the_log_after_the_older_one(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take([*story(), *[topic(f"u{n}", 3) for n in range(10)], gateway("c")])
    complete = opened(tmp_path / "complete", decided.bus)
    follow(complete, decided.bus)
    starts = []
    for storage in with_snapshots(tmp_path / "log", decided):
        data = whole(storage)
        assert data in whole(complete)
        starts.append(storage.start_offset)
    assert starts[0] == 0
    assert len(set(starts)) > 2
    held = snapshots.held_in(tmp_path / "log")
    assert len(held) == 2
    bases = {held[0].end_offset, held[1].end_offset}
    files = [f"{base:020d}{suffix}" for base in bases for suffix in (".log", ".ends")]
    files += [snapshots.path_of(tmp_path / "log", one).name for one in held]
    assert names(tmp_path / "log") == sorted(files)
    last = opened(tmp_path / "log", decided.bus)
    follow(last, decided.bus)
    assert (last.image, last.end_offset) == (complete.image, complete.end_offset)
    assert last.start_offset == held[0].end_offset
    assert last.end_of_epoch(2) == complete.end_of_epoch(2)
    assert last.end_of_epoch(3) == complete.end_of_epoch(3)
    last.close()
    complete.close()


def test_a_snapshot_equals_the_log_before_it(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    complete, images = opened(tmp_path / "complete", decided.bus), dict[int, MetadataImage]()
    for seq in range(1, decided.bus.decided_seq() + 1):
        follow(complete, decided.bus, through=seq)
        images[complete.end_offset] = complete.image
    seen = set()
    for _ in with_snapshots(tmp_path / "log", decided):
        for snapshot in snapshots.held_in(tmp_path / "log"):
            seen.add(snapshot)
            assert snapshots.read_image(tmp_path / "log", snapshot) == images[snapshot.end_offset]
            assert snapshot.epoch == images[snapshot.end_offset].quorum_epoch
    assert len(seen) > 2
    complete.close()


def test_a_snapshot_has_a_header_and_a_footer(tmp_path: Path) -> None:
    snapshot = SnapshotId(77, 3)
    snapshots.write(tmp_path, snapshot, MetadataImage(features={"metadata.version": 27}, quorum_epoch=3), 123)
    assert names(tmp_path) == ["00000000000000000077-0000000003.checkpoint"]
    head, body, end = decode_batches((tmp_path / names(tmp_path)[0]).read_bytes())
    assert [batch.base_offset for batch in (head, body, end)] == [0, 1, 2]
    assert [batch.control for batch in (head, body, end)] == [True, False, True]
    assert {batch.leader_epoch for batch in (head, body, end)} == {3}
    assert head.records[0][0] == b"\0\0\0\3"
    said = decode_message("SnapshotHeaderRecord", 0, head.records[0][1])
    assert said == {"Version": 0, "LastContainedLogTimestamp": 123}
    assert end.records[0][0] == b"\0\0\0\4"


def test_a_snapshot_is_read_piece_by_piece(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    storage = list(with_snapshots(tmp_path / "log", decided))[-1]
    storage = opened(tmp_path / "log", decided.bus)
    (*_, newest) = snapshots.held_in(tmp_path / "log")
    data, expected = b"", snapshots.path_of(tmp_path / "log", newest).read_bytes()
    while (piece := storage.read_snapshot(*newest, len(data), 100)) is not None and piece.data:
        assert (len(piece.data) <= 100, piece.size) == (True, len(expected))
        data += piece.data
    assert data == expected
    assert storage.read_snapshot(*newest, len(expected) + 5, 100) == (b"", len(expected))
    assert storage.read_snapshot(newest.end_offset, newest.epoch + 1, 0, 100) is None
    storage.close()


def test_a_fetch_before_the_log_start_is_sent_to_the_newest_snapshot(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    *_, storage = with_snapshots(tmp_path / "log", decided)
    storage = opened(tmp_path / "log", decided.bus)
    older, newest = snapshots.held_in(tmp_path / "log")
    start, end, epoch = storage.start_offset, storage.end_offset, storage.image.quorum_epoch
    assert start == older.end_offset > 0
    assert storage.snapshot_for(0, 0) == newest
    assert storage.snapshot_for(start - 1, older.epoch) == newest
    assert storage.snapshot_for(start, older.epoch) is None
    assert storage.snapshot_for(start, older.epoch + 1) == newest
    assert storage.snapshot_for(end, older.epoch - 1) == newest
    assert storage.snapshot_for(end, epoch) is None
    storage.close()
    fresh = opened(tmp_path / "fresh", decided.bus)
    follow(fresh, decided.bus)
    assert fresh.snapshot_for(0, 0) is None
    assert fresh.snapshot_for(5, 0) is None
    fresh.close()


@pytest.mark.parametrize("which", [0, 1], ids=["the older one", "the newest one"])
def test_a_damaged_snapshot_is_named_and_not_needed(decided: DecidedBus, tmp_path: Path, which: int) -> None:
    decided.take(story())
    for storage in with_snapshots(tmp_path / "log", decided):
        end = storage.end_offset
    held = [snapshots.path_of(tmp_path / "log", one) for one in snapshots.held_in(tmp_path / "log")]
    path, other = held[which], held[1 - which]
    sound = path.read_bytes()
    # Only the newest snapshot's records are read, so two copies in one file are noticed only there.
    twice = [sound + sound] * which
    for damaged in (sound[:-1], sound[:300] + b"?" + sound[301:], b"", *twice):
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match=rf"{path.name} is damaged .* without that file"):
            opened(tmp_path / "log", decided.bus)
    path.unlink()
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    assert storage.end_offset == end
    assert other.name.startswith(f"{storage.start_offset:020d}-")
    storage.close()


def test_a_log_without_the_snapshot_it_begins_with_is_not_served(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    *_, storage = with_snapshots(tmp_path / "log", decided)
    start = storage.start_offset
    for snapshot in snapshots.held_in(tmp_path / "log"):
        snapshots.remove(tmp_path / "log", snapshot)
    with pytest.raises(StorageError, match=f"begins at offset {start}, and no snapshot does"):
        Storage(tmp_path / "log")


def test_a_removal_that_is_killed_between_two_segments_leaves_a_log_that_can_be_served(
    decided: DecidedBus, tmp_path: Path
) -> None:
    """A crash while a snapshot is written leaves a segment without one. A later removal may stop right before it."""
    decided.take(story())
    directory, seen = tmp_path / "log", dict[Path, bytes]()
    for storage in with_snapshots(directory, decided):
        end = storage.end_offset
        seen |= {path: path.read_bytes() for path in directory.glob("0*.[le]*")}
    start = snapshots.held_in(directory)[0].end_offset
    before = max(base for path in seen if (base := int(path.stem)) < start)
    left = [directory / f"{before:020d}{suffix}" for suffix in (".log", ".ends")]
    for path in left:
        path.write_bytes(seen[path])
    storage = opened(directory, decided.bus)
    follow(storage, decided.bus)
    assert (storage.start_offset, storage.end_offset) == (start, end)
    decided.take([topic("later")])
    follow(storage, decided.bus)
    assert not any(path.exists() for path in left)
    storage.close()


def test_snapshots_are_taken_while_the_log_grows(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(BEGINNING)
    storage = opened(tmp_path / "log", decided.bus, snapshot_interval_bytes=3_000)
    for n in range(150):
        decided.take([event("create_topic", topic=f"t{n}", partitions=1, replication_factor=2)])
        follow(storage, decided.bus)
    image = storage.image
    storage.close()
    assert snapshots.held_in(tmp_path / "log")
    storage = opened(tmp_path / "log", decided.bus)
    assert storage.start_offset > 0
    assert storage.image == image
    storage.close()
