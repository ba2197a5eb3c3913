"""Blocks of producer ids."""

from isrflow.state.decisions import Answer, ProducerIds
from tests.controller_logic.world import World


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


def test_a_former_incarnation_gets_none() -> None:
    world = World(1)
    world.publish("allocate_producer_ids", broker=1, broker_epoch=world.broker(1).broker_epoch - 1, request_id="q")
    assert (world.error, world.all(ProducerIds)) == ("STALE_BROKER_EPOCH", [])
    assert world.state.cluster.next_producer_id == 0
