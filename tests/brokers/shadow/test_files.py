"""A metadata directory is read as far as it goes; what is damaged or missing is named, and ends nothing."""

import random
import shutil
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from brokers.shadow.files import read_directory
from brokers.shadow.place import PlaceError, opened
from brokers.shadow.source import UNKNOWN_RECORD, Batch, Damage, Gap, Read, Snapshot
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from brokers.wire.plain import write_uvarint
from brokers.wire.record_batch import encode_batch
from tests.brokers.shadow.worlds import bytes_of, rec, snapshot_bytes

NO_OP = rec("NoOp")
TOPIC = rec("Topic", Name="t", TopicId="TTTTTTTTTTTTTTTTTTTTTQ")
# Batches of one record at the offsets 0 to 5.
BATCHES = [bytes_of(offset, NO_OP, time_ms=offset * 1_000) for offset in range(6)]


def segment(folder: Path, base: int, *batches: bytes) -> Path:
    path = folder / f"{base:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def snapshot(folder: Path, offset: int, data: bytes) -> Path:
    path = folder / f"{offset:020d}-{1:010d}.checkpoint"
    path.write_bytes(data)
    return path


def told(folder: Path) -> list[str]:
    return [_told(one) for one in read_directory(folder)]


def _told(one: Read) -> str:
    match one:
        case Batch():
            return str(one.base_offset)
        case Snapshot():
            return f"snapshot {one.offset} at {one.time_ms}: {len(one.records)} records"
        case Gap():
            return f"gap {one.start}-{one.end}"
        case Damage():
            return f"damage at {one.offset}"


def test_a_whole_log_is_read_from_its_beginning(tmp_path: Path) -> None:
    segment(tmp_path, 0, *BATCHES[:3])
    segment(tmp_path, 3, *BATCHES[3:])
    snapshot(tmp_path, 2, snapshot_bytes(TOPIC))
    assert told(tmp_path) == ["0", "1", "2", "3", "4", "5"]


def test_a_log_that_begins_later_is_read_from_the_oldest_snapshot_that_it_reaches(tmp_path: Path) -> None:
    segment(tmp_path, 2, *BATCHES[2:])
    snapshot(tmp_path, 1, snapshot_bytes(NO_OP))
    snapshot(tmp_path, 3, snapshot_bytes(TOPIC, time_ms=2_000))
    snapshot(tmp_path, 5, snapshot_bytes(TOPIC, NO_OP))
    assert told(tmp_path) == ["snapshot 3 at 2000: 1 records", "3", "4", "5"]


def test_a_log_whose_snapshots_are_lost_begins_with_a_gap(tmp_path: Path) -> None:
    segment(tmp_path, 2, *BATCHES[2:])
    assert told(tmp_path) == ["gap 0-2", "2", "3", "4", "5"]


def test_snapshots_alone_give_the_newest_state(tmp_path: Path) -> None:
    snapshot(tmp_path, 1, snapshot_bytes(NO_OP))
    snapshot(tmp_path, 3, snapshot_bytes(TOPIC, time_ms=2_000))
    assert told(tmp_path) == ["snapshot 3 at 2000: 1 records"]


@pytest.mark.parametrize("left", [1, 30, 60, -1])
def test_a_batch_that_was_being_written_is_left_out(tmp_path: Path, left: int) -> None:
    segment(tmp_path, 0, *BATCHES[:5], BATCHES[5][:left])
    assert told(tmp_path) == ["0", "1", "2", "3", "4"]


def test_a_file_that_kafka_filled_with_zeros_is_whole(tmp_path: Path) -> None:
    segment(tmp_path, 0, *BATCHES, bytes(5_000))
    assert told(tmp_path) == ["0", "1", "2", "3", "4", "5"]


def test_a_flipped_byte_costs_its_batch(tmp_path: Path) -> None:
    damaged = bytearray(BATCHES[2])
    damaged[-3] ^= 1
    segment(tmp_path, 0, *BATCHES[:2], bytes(damaged), *BATCHES[3:])
    assert told(tmp_path) == ["0", "1", "damage at 2", "gap 2-3", "3", "4", "5"]


def test_a_snapshot_takes_the_place_of_what_is_missing_and_of_what_follows_it(tmp_path: Path) -> None:
    segment(tmp_path, 0, *BATCHES[:2])
    segment(tmp_path, 3, *BATCHES[3:])
    snapshot(tmp_path, 1, snapshot_bytes(NO_OP))
    snapshot(tmp_path, 4, snapshot_bytes(TOPIC))
    assert told(tmp_path) == ["0", "1", "gap 2-4", "snapshot 4 at 0: 1 records", "4", "5"]


def test_a_log_that_ends_before_a_snapshot_goes_on_with_it(tmp_path: Path) -> None:
    segment(tmp_path, 0, *BATCHES[:2])
    segment(tmp_path, 3, *BATCHES[3:5])
    snapshot(tmp_path, 5, snapshot_bytes(TOPIC))
    assert told(tmp_path) == ["0", "1", "gap 2-5", "snapshot 5 at 0: 1 records"]


def test_a_snapshot_is_all_that_is_left_of_the_end(tmp_path: Path) -> None:
    segment(tmp_path, 0, *BATCHES[:2])
    snapshot(tmp_path, 4, snapshot_bytes(TOPIC))
    snapshot(tmp_path, 5, snapshot_bytes(TOPIC, NO_OP))
    assert told(tmp_path) == ["0", "1", "gap 2-5", "snapshot 5 at 0: 2 records"]


def test_the_first_segment_may_be_cut_off_in_the_middle(tmp_path: Path) -> None:
    segment(tmp_path, 0, *BATCHES[:2], BATCHES[2][:40])
    segment(tmp_path, 3, *BATCHES[3:])
    assert told(tmp_path) == ["0", "1", "damage at 2", "gap 2-3", "3", "4", "5"]


def test_a_damaged_snapshot_is_named_and_the_next_one_taken(tmp_path: Path) -> None:
    segment(tmp_path, 2, *BATCHES[2:])
    snapshot(tmp_path, 2, snapshot_bytes(TOPIC)[:-1])
    snapshot(tmp_path, 4, snapshot_bytes(TOPIC))
    assert told(tmp_path) == ["damage at 2", "snapshot 4 at 0: 1 records", "4", "5"]


def test_a_snapshot_without_an_end_is_not_whole(tmp_path: Path) -> None:
    segment(tmp_path, 2, *BATCHES[2:])
    snapshot(tmp_path, 2, bytes_of(0, TOPIC))
    assert told(tmp_path) == ["damage at 2", "gap 0-2", "2", "3", "4", "5"]


def unknown(key: int, version: int, frame: int = 1) -> bytes:
    out = bytearray()
    for number in (frame, key, version):
        write_uvarint(out, number)
    return bytes(out) + b"\1\2\3"


@pytest.mark.parametrize("value", [unknown(999, 0), unknown(2, 99), unknown(2, 0), unknown(2, 0, frame=9), b"\xff"])
def test_a_record_of_a_newer_kafka_is_kept_and_named(tmp_path: Path, value: bytes) -> None:
    segment(tmp_path, 0, encode_batch(0, 1, 0, [(None, value)]), BATCHES[1])
    first, second = read_directory(tmp_path)
    assert isinstance(first, Batch)
    [record] = first.records
    assert (record.name, record.values["Bytes"]) == (UNKNOWN_RECORD, len(value))
    assert isinstance(second, Batch)


def test_records_of_any_bytes_are_read(tmp_path: Path) -> None:
    """A batch whose CRC matches may still hold what no Kafka has written."""
    rng = random.Random(1)
    for _ in range(300):
        values = [rng.randbytes(rng.randint(0, 40)) for _ in range(rng.randint(1, 3))]
        values += [bytes((1, rng.randint(0, 30), rng.randint(0, 4))) + rng.randbytes(rng.randint(0, 60))]
        control = rng.random() < 0.3
        keys = [rng.randbytes(4) if control else None for _ in values]
        data = encode_batch(0, 1, 0, list(zip(keys, values, strict=True)), control=control)
        segment(tmp_path, 0, data)
        [one] = read_directory(tmp_path)
        assert isinstance(one, Batch)
        assert len(one.records) == len(values)


def test_whatever_bytes_are_flipped_or_lost_the_rest_is_read(tmp_path: Path) -> None:
    """Whole batches before and after the damage come; gaps and batches together cover every offset up to the last."""
    rng = random.Random(1)
    whole = b"".join(BATCHES)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            position = rng.randrange(len(data))
            if rng.random() < 0.3:
                del data[position : position + rng.randint(1, 100)]
            else:
                data[position] ^= 1 << rng.randrange(8)
            if not data:
                break
        segment(tmp_path, 0, bytes(data))
        expected = 0
        for one in read_directory(tmp_path):
            if isinstance(one, Batch):
                assert one.base_offset == expected
                expected = one.next_offset
            elif isinstance(one, Gap):
                assert one.start == expected < one.end
                expected = one.end
        undamaged, position = 0, 0
        while undamaged < len(BATCHES) and data.startswith(BATCHES[undamaged], position):
            position += len(BATCHES[undamaged])
            undamaged += 1
        assert expected >= undamaged


def node_folder(folder: Path) -> Path:
    data = folder / "data-0"
    log = data / METADATA_DIRECTORY
    log.mkdir(parents=True)
    (data / "meta.properties").write_text("#a comment\nversion=1\ncluster.id=Q1\nnode.id=3\n")
    segment(log, 0, *BATCHES)
    other = data / "orders-0"
    other.mkdir()
    segment(other, 0, b"records of users")
    return log


@pytest.mark.parametrize("up", [0, 1, 2])
def test_the_log_is_found_in_any_folder_around_it(tmp_path: Path, up: int) -> None:
    log = node_folder(tmp_path)
    with opened([log, *log.parents][up]) as place:
        assert place == (log, "Q1", 3)


def test_a_copy_of_the_log_alone_has_no_cluster(tmp_path: Path) -> None:
    log = node_folder(tmp_path)
    moved = tmp_path / "copy" / "of-it"
    shutil.copytree(log, moved)
    with opened(moved) as place:
        assert place == (moved, None, None)


@pytest.mark.parametrize("kind", ["tar", "gztar", "xztar", "zip"])
def test_a_bundle_is_read_like_its_folder(tmp_path: Path, kind: str) -> None:
    node_folder(tmp_path / "node")
    bundle = Path(shutil.make_archive(str(tmp_path / "bundle"), kind, tmp_path / "node"))
    with opened(bundle) as place:
        assert (place.cluster_id, place.node) == ("Q1", 3)
        assert told(place.directory) == ["0", "1", "2", "3", "4", "5"]
    assert not place.directory.exists()


def test_a_bundle_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    node_folder(tmp_path / "node")
    for kind, left in (("gztar", 100), ("xztar", 100), ("tar", 700), ("zip", 300)):
        bundle = Path(shutil.make_archive(str(tmp_path / "bundle"), kind, tmp_path / "node"))
        bundle.write_bytes(bundle.read_bytes()[:left])
        with pytest.raises(PlaceError), opened(bundle):
            pass


@pytest.mark.parametrize("kind", ["tar", "gztar", "xztar", "bztar", "zip"])
def test_a_damaged_bundle_is_refused_or_read(tmp_path: Path, kind: str) -> None:
    rng = random.Random(1)
    node_folder(tmp_path / "node")
    bundle = Path(shutil.make_archive(str(tmp_path / "bundle"), kind, tmp_path / "node"))
    whole = bundle.read_bytes()
    for _ in range(40):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        bundle.write_bytes(data)
        with suppress(PlaceError), opened(bundle) as place:
            assert len(told(place.directory)) > 0


def test_a_bundle_writes_nothing_outside(tmp_path: Path) -> None:
    bundle = tmp_path / "evil.tar"
    path = segment(tmp_path, 0, *BATCHES)
    with tarfile.open(bundle, "w") as packed:
        packed.add(path, f"../../escaped/{path.name}")
        packed.add(path, f"/rooted/{METADATA_DIRECTORY}/{path.name}")
    with opened(bundle) as place:
        assert told(place.directory) == ["0", "1", "2", "3", "4", "5"]
        assert place.directory.parts[-2:] == ("rooted", METADATA_DIRECTORY)
        assert place.directory.is_relative_to(place.directory.parents[1])


def test_a_place_without_a_log_says_what_was_looked_for(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(PlaceError, match="has no metadata log: expected __cluster_metadata-0"), opened(empty):
        pass
    with pytest.raises(PlaceError, match="does not exist"), opened(tmp_path / "none"):
        pass
    (tmp_path / "text").write_text("text")
    with (
        pytest.raises(PlaceError, match=r"text is damaged, or neither a folder nor a tar or zip file$"),
        opened(tmp_path / "text"),
    ):
        pass
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(PlaceError, match=r"empty.zip has no metadata log"), opened(tmp_path / "empty.zip"):
        pass


def test_two_logs_are_not_mixed(tmp_path: Path) -> None:
    node_folder(tmp_path / "node-1")
    node_folder(tmp_path / "node-2")
    with pytest.raises(PlaceError, match=r"2 metadata logs.*node-1/data-0.*node-2/data-0"), opened(tmp_path):
        pass
