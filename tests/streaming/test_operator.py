"""The operators without a JVM: fan-out as a plain function, the shard operator in PySpark's tester."""

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from isrflow.bus.embedded import EmbeddedBus
from isrflow.bus.image import view_of_image
from isrflow.bus.interface import Image
from isrflow.controller_logic.log import decide
from isrflow.state.event_text import decode
from isrflow.state.ids import shard_of
from isrflow.state.policy import Policy
from isrflow.streaming.fan_out import ARROW_SCHEMA, decode_routed, fan_out
from isrflow.streaming.shard import ShardOperator
from tests.support.engine import decisions_of, encoded
from tests.support.operators import PAGES, SHARDS, OperatorCluster, arrow
from tests.support.worlds import recorded


@pytest.mark.parametrize(("batch", "pieces"), [(1, 1), (40, 1), (64, 5), (1_000, 3)])
def test_operators_decide_as_the_rules_do(tmp_path, batch: int, pieces: int) -> None:
    log = recorded(seed=21, count=800)
    bus = EmbeddedBus(tmp_path / "bus.db")
    cluster = OperatorCluster(bus)
    for first in range(0, len(log), batch):
        cluster.batch(log[first : first + batch], pieces)
    expected = decide(log, Policy())
    assert decisions_of(bus) == expected.decisions
    assert view_of_image(bus.image()) == expected.view()


def test_a_batch_that_comes_again_finds_the_state_of_before(tmp_path) -> None:
    log = recorded(seed=22, count=300)
    bus = EmbeddedBus(tmp_path / "bus.db")
    cluster = OperatorCluster(bus)
    cluster.batch(log[:200])
    cluster.batch(log[100:200])
    cluster.batch(log[200:])
    assert decisions_of(bus) == decide(log, Policy()).decisions


def test_a_new_checkpoint_starts_from_the_pages_of_the_bus(tmp_path) -> None:
    log = recorded(seed=23, count=400)
    bus = EmbeddedBus(tmp_path / "bus.db")
    OperatorCluster(bus).batch(log[:200])
    image: Image = bus.image()
    again = OperatorCluster(bus)
    again.testers = [
        TwsTester(
            ShardOperator(SHARDS, PAGES, Policy(), {}),
            initialStateRow=[
                (shard, Row(shard=shard, page=p.page, body=p.body)) for p in image.pages if p.shard == shard
            ],
        )
        for shard in range(SHARDS)
    ]
    again.batch(log[200:])
    assert decisions_of(bus) == decide(log, Policy()).decisions


def test_heartbeats_store_no_page_and_load_none(tmp_path) -> None:
    log = recorded(seed=24, count=100)
    cluster = OperatorCluster(EmbeddedBus(tmp_path / "bus.db"))
    cluster.batch(log)
    for shard, tester in enumerate(cluster.testers):
        # Pages that cannot be read: whoever loads one fails.
        held = tester.peekMapState("pages", shard)
        tester.updateMapState("pages", shard, dict.fromkeys(held, (b"\xff",)))
    beat = encoded("broker_heartbeat", broker=9, broker_epoch=1, want_fence=False, want_shutdown=False)
    made = cluster.batch([(101, beat)])
    assert len(made) == SHARDS


def test_every_shard_hears_how_far_the_log_and_the_clock_have_come() -> None:
    tick = b'{"kind":"tick","time_ms":7}'
    offset = encoded("log_end_offset", topic="t", partition=0, broker=1, leader_epoch=0, log_end_offset=1)
    now_ms = decode(offset).time_ms
    (batch,) = fan_out(iter([arrow([(1, tick), (2, offset), (3, b"junk")])]), shards=SHARDS)
    assert batch.schema == ARROW_SCHEMA
    for shard, body in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        routed = decode_routed(body)
        assert (routed[-1].seq, routed[-1].clock_ms) == (3, now_ms)
        assert [r.seq for r in routed if r.raw] == [1] + [2] * (shard == shard_of("t", SHARDS)) + [3] * (shard == 0)


def test_an_empty_batch_fans_out_to_nobody() -> None:
    assert list(fan_out(iter([arrow([(1, b"x")]).slice(0, 0)]), shards=SHARDS)) == []
