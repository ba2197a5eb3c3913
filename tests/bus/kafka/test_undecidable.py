"""A foreign open transaction keeps events from being decided, and the bus names it. On real Kafka."""

from collections.abc import Iterator

import pytest

from brokers.launch.kafka.tools import TRANSACTIONS, run_tool
from bus.interface import Blocked
from bus.kafka.bus import KafkaBus
from conf.jars import fetch
from tests.support.open_transaction import EVENT, Stranger
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kafka_bus
TICK = b'{"kind":"tick","time_ms":1,"controller_epoch":1}'


@pytest.fixture
def stranger(kafka_servers: str) -> Iterator[Stranger]:
    stranger = Stranger(kafka_servers)
    yield stranger
    stranger.producer.purge()


def test_nothing_is_blocked_by_what_is_committed(bus: KafkaBus, stranger: Stranger) -> None:
    bus.publish([EVENT])
    stranger.write(bus.address.events)
    stranger.producer.commit_transaction(TIMEOUT_S)
    bus.claim("a", {}, 1)
    wait_until(lambda: bus.blocked() is None, "the marks of both transactions")
    assert bus.blocker() == ""


def test_an_open_transaction_is_named_with_its_producer_and_the_command_that_aborts_it(
    bus: KafkaBus, stranger: Stranger, kafka_servers: str
) -> None:
    bus.publish([EVENT])
    stranger.write(bus.address.events)
    behind = bus.publish([EVENT])
    assert bus.blocked() == Blocked(1, 2)
    assert bus.last_seq() < behind
    told = bus.blocker()
    assert f"{bus.address.events}-0 at offset 1" in told
    for part in (f"transactional.id {stranger.name!r}", "producer id ", "coordinator epoch ", "time-out 45000 ms"):
        assert part in told
    fetch("kafka-tools")
    _, _, command = told.partition("to abort it: ")
    script, option, servers, *rest = command.split()
    assert (script, option, servers) == ("kafka-transactions.sh", "--bootstrap-server", kafka_servers)
    run_tool(TRANSACTIONS, servers, rest)
    wait_until(lambda: bus.blocked() is None, "the transaction to be aborted")
    assert bus.last_seq() > behind - 1
    assert bus.blocker() == ""


def test_the_ticks_of_an_engine_are_seen_behind_an_open_transaction(bus: KafkaBus, stranger: Stranger) -> None:
    stranger.write(bus.address.events)
    ticks = [bus.publish_own([TICK]) for _ in range(2)]
    assert bus.last_seq() < ticks[0]
    assert bus.newest_tick() == ticks[1]
    assert bus.publish_own([TICK]) == bus.newest_tick()
