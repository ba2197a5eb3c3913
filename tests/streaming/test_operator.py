"""The operators without a JVM: fan-out as a plain function, the shard operator in PySpark's tester."""

import random

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from controller_logic.replay import decide
from sinks.decision_log import DecisionLog
from state.event_text import decode
from state.ids import shard_of
from state.policy import Policy
from streaming.fan_out import ARROW_SCHEMA, PackedRow, decode_packed
from streaming.keys import SHARED
from streaming.shard import ShardOperator
from tests.support.engine import decisions_of, encoded
from tests.support.operators import PAGES, SHARDS, OperatorCluster, fanned_out, packed_rows
from tests.support.random_logs import seeded


@pytest.mark.parametrize(("batch", "pieces"), [(1, 1), (40, 1), (64, 5), (1_000, 3)])
def test_operators_decide_as_the_rules_do(tmp_path, batch: int, pieces: int) -> None:
    log = seeded(seed=21, count=800)
    bus = EmbeddedBus(tmp_path / "bus.db")
    cluster = OperatorCluster(bus)
    for first in range(0, len(log), batch):
        cluster.batch(log[first : first + batch], pieces)
    expected = decide(log, Policy())
    assert decisions_of(bus) == expected.decisions
    assert view_of_image(bus.image()) == expected.view()


def test_the_earliest_deadline_of_a_batch_counts(tmp_path) -> None:
    expiries: list[int] = []
    bus = EmbeddedBus(tmp_path / "bus.db")
    cluster = OperatorCluster(bus)
    cluster.log = DecisionLog(bus, 0, lambda through, expires_ms: expiries.append(expires_ms))
    asked = [encoded("delete_topic", topic="t", request_id="r", timeout_ms=timeout_ms) for timeout_ms in (70, 50, 60)]
    cluster.batch([(seq, raw, 1_000, False) for seq, raw in enumerate(asked, start=1)])
    assert expiries == [1_050]


def test_a_repeated_batch_starts_from_the_former_state(tmp_path) -> None:
    log = seeded(seed=22, count=300)
    bus = EmbeddedBus(tmp_path / "bus.db")
    cluster = OperatorCluster(bus)
    cluster.batch(log[:200])
    cluster.batch(log[100:200])
    cluster.batch(log[200:])
    assert decisions_of(bus) == decide(log, Policy()).decisions


def test_a_new_checkpoint_starts_from_the_pages_of_the_bus(tmp_path) -> None:
    log = seeded(seed=23, count=400)
    bus = EmbeddedBus(tmp_path / "bus.db")
    OperatorCluster(bus).batch(log[:200])
    OperatorCluster(bus, image=bus.image()).batch(log[200:])
    assert decisions_of(bus) == decide(log, Policy()).decisions


def test_an_operator_that_took_in_pages_decides_as_one_that_decided_from_the_beginning(tmp_path) -> None:
    """A standby takes in the whole state, then what changes, and then decides."""
    log = seeded(seed=23, count=400)
    bus = EmbeddedBus(tmp_path / "bus.db")
    active, standby = OperatorCluster(bus), OperatorCluster(bus)
    for batch in (log[:100], log[100:110], log[110:200]):
        before = {page[:2]: page for page in bus.image().pages}
        active.batch(batch)
        standby.take_in([page for page in bus.image().pages if before.get(page[:2]) != page])
    standby.batch(log[200:])
    assert decisions_of(bus) == decide(log, Policy()).decisions


def test_heartbeats_store_no_page_and_load_none(tmp_path) -> None:
    log = seeded(seed=24, count=100)
    cluster = OperatorCluster(EmbeddedBus(tmp_path / "bus.db"))
    cluster.batch(log)
    for shard, tester in enumerate(cluster.testers):
        # Pages that cannot be read: loading them fails.
        tester.updateValueState("pages", shard, (b"\xff",))
    beat = encoded("broker_heartbeat", broker=9, broker_epoch=1, want_fence=False, want_shutdown=False)
    made = cluster.batch([(101, beat)])
    assert len(made) == SHARDS


def test_every_shard_hears_how_far_the_log_and_the_clock_have_come() -> None:
    tick = b'{"kind":"tick","time_ms":7}'
    offset = encoded("log_end_offset", topic="t", partition=0, broker=1, leader_epoch=0, log_end_offset=1)
    now_ms = decode(offset).time_ms
    batches = fanned_out([(1, tick), (2, offset), (3, b"junk")], SHARDS)
    assert [batch.schema for batch in batches] == [ARROW_SCHEMA] * 2
    rows = {key: decode_packed(body) for key, body in packed_rows(batches)}
    assert list(rows) == [SHARED, *range(SHARDS)]
    for shard, packed in rows.items():
        if shard != SHARED:
            assert packed.shared_count == 1
            assert (packed.routed[-1].seq, packed.routed[-1].clock_ms) == (3, now_ms)
            own = [2] * (shard == shard_of("t", SHARDS)) + [3] * (shard == 0)
            assert [r.seq for r in packed.routed if r.raw] == own


def test_an_event_for_all_shards_is_shipped_once() -> None:
    # Not even compression makes copies of this small.
    noise = random.Random(1).randbytes(50_000).hex().encode()
    beat = b'{"kind":"broker_heartbeat","time_ms":1,"x":"%s"}' % noise
    tick = b'{"kind":"tick","time_ms":1,"x":"%s"}' % noise
    batches = fanned_out([(1, tick), (2, beat), (3, tick)], 16)
    assert len(tick) < sum(batch.nbytes for batch in batches) < 3 * len(tick)
    assert decode_packed(dict(packed_rows(batches))[5]) == PackedRow(2, [])


def test_a_shard_that_missed_a_shared_event_stops() -> None:
    (_, rows) = fanned_out([(1, b'{"kind":"tick","time_ms":7}')], 1)
    tester = TwsTester(ShardOperator(1, PAGES, Policy(), {}))
    tester.processor.close()
    with pytest.raises(RuntimeError, match="only 0 of 1 events for all shards"):
        tester.test(0, [Row(shard=0, events=rows.column(1).to_pylist()[0])])


def test_an_empty_batch_fans_out_to_no_shard() -> None:
    assert fanned_out([], SHARDS) == []
