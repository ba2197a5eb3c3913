"""Controllers of every version of Kafka are read, with the newest requests that each of them serves."""

from pathlib import Path

import pytest

from brokers.shadow.source import Batch
from conf.kafka_versions import KAFKA_VERSIONS
from isrflow.clock import now_ms
from tests.support.shadow_reader import ShadowReader, batches_on_disk
from tests.support.stock_quorum import StockQuorum

pytestmark = pytest.mark.kraft
READ_MS = 5_000
OLDEST, *BETWEEN, NEWEST = KAFKA_VERSIONS


@pytest.mark.parametrize("version", [OLDEST, *(pytest.param(one, marks=pytest.mark.long) for one in BETWEEN), NEWEST])
def test_every_version_of_kafka_is_read(version: str, tmp_path: Path) -> None:
    with StockQuorum(tmp_path / "kafka", controllers=3, brokers=1, version=version) as stock:
        with ShadowReader(stock.endpoints) as reader:
            begun_ms = now_ms()
            reader.wait_for(
                lambda item: isinstance(item, Batch) and item.time_ms > begun_ms + READ_MS, "some seconds of batches"
            )
        read = reader.batches
        on_disk = batches_on_disk(stock.node(101).data[0])
        assert reader.cluster_id == stock.cluster.cluster_id
        shared = [batch for batch in on_disk if batch.next_offset <= read[-1].next_offset]
        assert len(shared) > 10 and shared == read[: len(shared)]
