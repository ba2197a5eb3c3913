"""Blocks of producer ids."""

from msgspec.structs import replace

from state.decisions import Answer, ProducerIds
from state.ids import PRODUCER_IDS_PER_BLOCK
from tests.support.world import World


def test_each_block_begins_where_the_last_one_ended() -> None:
    world = World(1, 2)
    starts = []
    for broker in (1, 2, 1):
        epoch = world.broker(broker).broker_epoch
        world.publish("allocate_producer_ids", broker=broker, broker_epoch=epoch, request_id=broker)
        answer = world.one(Answer)
        starts.append((answer.producer_id_start, answer.producer_id_len))
        assert world.one(ProducerIds).next_producer_id == sum(starts[-1])
    assert starts == [(0, 1_000), (1_000, 1_000), (2_000, 1_000)]


def test_a_former_incarnation_gets_no_producer_ids() -> None:
    world = World(1)
    world.publish("allocate_producer_ids", broker=1, broker_epoch=world.broker(1).broker_epoch - 1, request_id="q")
    assert (world.error, world.all(ProducerIds)) == ("STALE_BROKER_EPOCH", [])
    assert world.state.cluster.next_producer_id == 0


def test_exhausted_producer_ids_are_refused() -> None:
    world = World(1)
    last = 2**63 - 1 - PRODUCER_IDS_PER_BLOCK
    world.state = replace(world.state, cluster=replace(world.state.cluster, next_producer_id=last))
    request = {"broker": 1, "broker_epoch": world.broker(1).broker_epoch}
    world.publish("allocate_producer_ids", **request)
    assert (world.error, world.one(Answer).broker, world.one(Answer).producer_id_start) == ("NONE", 1, last)
    world.publish("allocate_producer_ids", **request)
    assert (world.error, world.one(Answer).broker) == ("UNKNOWN_SERVER_ERROR", 1)
    assert world.state.cluster.next_producer_id == 2**63 - 1


def test_ids_that_were_handed_out_elsewhere_are_passed_over() -> None:
    world = World(1)
    request = {"broker": 1, "broker_epoch": world.broker(1).broker_epoch}
    starts = []
    for first_id_min in (5_000, 5_000, 0):
        world.publish("allocate_producer_ids", **request, first_id_min=first_id_min)
        starts.append(world.one(Answer).producer_id_start)
    assert starts == [5_000, 6_000, 7_000]
