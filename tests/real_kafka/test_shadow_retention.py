"""Controllers keep a log for a while. What a shadow reads of a log that begins late, and after it was away too long."""

from collections.abc import Iterator

import pytest

from brokers.shadow.controller_line import Position
from brokers.shadow.fetched_log import LogCutError
from brokers.shadow.source import Batch, Gap, Snapshot
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from tests.support.shadow_reader import ShadowReader, batches_on_disk
from tests.support.stock_quorum import StockQuorum
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kraft
SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    # Two snapshots and what is between them; the rest is removed once a minute.
    "metadata.max.retention.bytes": "5000",
    "metadata.max.idle.interval.ms": "50",
    "internal.metadata.log.segment.bytes": "2000",
}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockQuorum]:
    with StockQuorum(tmp_path_factory.mktemp("stock") / "kafka", of_controllers=SMALL) as stock:
        yield stock


def snapshots(stock: StockQuorum) -> list[Position]:
    """Return the ends of the snapshots on disk, and their epochs."""
    folder = stock.node(101).data[0] / METADATA_DIRECTORY
    names = sorted(path.stem for path in folder.glob("*-*.checkpoint") if not path.stem.startswith("0" * 20))
    return [Position(int(name[:20]), int(name[21:])) for name in names]


def test_a_reader_that_was_away_too_long_has_a_gap(stock: StockQuorum) -> None:
    with ShadowReader(stock.endpoints) as reader:
        reader.wait_for_offset(5)
    position = reader.position
    oldest = wait_until(lambda: snapshots(stock), "a snapshot")[0]
    wait_until(lambda: oldest not in snapshots(stock), "the removal of the oldest snapshot and what is before it")
    with ShadowReader(stock.endpoints, position) as reader:
        reader.wait_for(lambda item: isinstance(item, Batch), "a batch")
    gap, snapshot, first = reader.read[:3]
    assert isinstance(gap, Gap) and isinstance(snapshot, Snapshot) and isinstance(first, Batch)
    assert (gap.start, gap.end) == (position.offset, snapshot.offset)
    assert first.base_offset == snapshot.offset
    assert {"FeatureLevelRecord", "RegisterControllerRecord"} <= {record.name for record in snapshot.records}
    on_disk = {batch.base_offset: batch for batch in batches_on_disk(stock.node(101).data[0])}
    assert [on_disk.get(batch.base_offset, batch) for batch in reader.batches] == reader.batches
    # A new reader begins with all that there is.
    with ShadowReader(stock.endpoints) as reader:
        reader.wait_for(lambda item: isinstance(item, Batch), "a batch")
    assert isinstance(reader.read[0], Snapshot)
    assert reader.read[0].offset <= snapshot.offset


def test_a_reader_begins_with_the_oldest_snapshot_and_goes_on_with_the_newest(stock: StockQuorum) -> None:
    wait_until(lambda: len(snapshots(stock)) > 1, "two snapshots")
    oldest = snapshots(stock)[0]
    with ShadowReader(stock.endpoints) as reader:
        reader.wait_for(lambda item: isinstance(item, Batch), "a batch")
        begun = reader.read[0]
        # Retention may have removed the oldest one meanwhile.
        assert isinstance(begun, Snapshot) and begun.offset >= oldest.offset
        wait_until(lambda: begun.offset < snapshots(stock)[-1].offset, "a newer snapshot")
        reader.wait_for_offset(snapshots(stock)[-1].offset + 5)
    assert [batch.base_offset for batch in reader.batches] == [
        begun.offset,
        *(batch.next_offset for batch in reader.batches[:-1]),
    ]
    with ShadowReader(stock.endpoints, reader.position) as reader_again:
        reader_again.wait_for(lambda item: isinstance(item, Batch), "a batch")
    [first] = [item for item in reader_again.read if isinstance(item, Snapshot)]
    assert begun.offset < first.offset <= reader.position.offset
    assert not [item for item in reader_again.read if isinstance(item, Gap)]


@pytest.mark.parametrize("after", [Position(1_000_000, 1), Position(1_000_000, 9)])
def test_a_log_that_ends_before_a_shadow_is_not_that_of_its_cluster(stock: StockQuorum, after: Position) -> None:
    with ShadowReader(stock.endpoints, after) as reader:
        wait_until(lambda: reader.error, "a refusal")
    assert isinstance(reader.error, LogCutError)
    assert not reader.read
