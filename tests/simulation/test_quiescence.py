"""Each liveness check finds the fault that is put into a settled history."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from state.events import TopicPartition
from state.partition import TopicState
from tests.simulation.logs_seen import Record
from tests.simulation.quiescence import unsettled
from tests.simulation.simulation import Simulation

SEED = 1
PLACE = TopicPartition("t", 0)


@pytest.fixture
def settled() -> Simulation:
    """Run a history to its end, and mark its processes as alive again."""
    simulation = Simulation(SEED)
    assert simulation.run() is None
    for process in simulation.processes.values():
        process.alive = True
    assert unsettled(simulation) is None
    return simulation


def partition(simulation: Simulation) -> Any:
    assert simulation.state is not None
    return simulation.state.topics["t"].partitions[0]


def spoil(simulation: Simulation, **fields: Any) -> None:
    """Change the first partition of the last committed state."""
    assert simulation.state is not None
    topic = simulation.state.topics["t"]
    changed = replace(topic, partitions=(replace(topic.partitions[0], **fields), *topic.partitions[1:]))
    simulation.state = simulation.state._replace(topics={**simulation.state.topics, "t": changed})


def found(simulation: Simulation) -> str:
    return (unsettled(simulation) or ("",))[0]


def test_an_unfinished_deletion_is_found(settled: Simulation) -> None:
    assert settled.state is not None
    topic = settled.state.topics["t"]
    for waits in (replace(topic, state=TopicState.deleting), replace(topic, deletion_waits=True)):
        settled.state = settled.state._replace(topics={**settled.state.topics, "t": waits})
        assert found(settled) == "L9"


def test_a_log_of_a_deleted_topic_is_found(settled: Simulation) -> None:
    assert settled.state is not None
    settled.state = settled.state._replace(topics={})
    assert found(settled) == "L9"


def test_a_preferred_replica_that_does_not_lead_is_found(settled: Simulation) -> None:
    held = partition(settled)
    others = tuple(replica for replica in held.replicas if replica != held.leader)
    spoil(settled, replicas=(*others, held.leader))
    assert found(settled) == ""
    settled.scenery = settled.scenery._replace(balanced=True)
    assert found(settled) == "L10"


def test_a_producer_without_an_answer_is_found(settled: Simulation) -> None:
    settled.sending.append(asyncio.Future(loop=settled.loop))  # type: ignore[arg-type]
    settled.sending[-1].get_name = lambda: "producer"  # type: ignore[method-assign]
    assert found(settled) == "L5"


def test_an_acknowledged_record_that_no_log_has_is_found(settled: Simulation) -> None:
    settled.checkers.committed[PLACE].append(Record(0, 1))
    settled.checkers.clients.acknowledged(PLACE, 0, len(settled.checkers.committed[PLACE]) - 1, 1)
    assert found(settled) == "D7"


def test_a_leader_that_shows_what_a_member_lacks_is_found(settled: Simulation) -> None:
    held = partition(settled)
    member = next(m for m in held.isr if m != held.leader)
    settled.checkers.logs.of(member, PLACE).clear()
    leading = settled.brokers[held.leader].partitions[PLACE]
    settled.checkers.led(leading, leading.high_watermark)
    assert settled.violated is not None
    assert settled.violated.invariant == "D2"
