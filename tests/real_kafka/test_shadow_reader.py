"""A shadow reads the log of three stock controllers through what happens to them, and gets what they have on disk."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from brokers.launch.kafka.node import KafkaNode
from brokers.shadow.source import Batch, Gap, Read
from tests.support.shadow_reader import ShadowReader, batches_on_disk
from tests.support.stock_quorum import StockQuorum
from tests.support.waiting import wait_until, wait_until_equal

pytestmark = pytest.mark.kraft


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockQuorum]:
    with StockQuorum(tmp_path_factory.mktemp("stock") / "kafka", controllers=3, brokers=1) as stock:
        yield stock


@pytest.fixture
def reader(stock: StockQuorum) -> Iterator[ShadowReader]:
    with ShadowReader(stock.endpoints) as reader:
        reader.wait_for_offset(5)
        yield reader


def active(stock: StockQuorum, reader: ShadowReader) -> KafkaNode:
    """Return the controller that the reader follows."""
    leader = reader.quorum.leader
    return next(stock.node(one.voter) for one in stock.voters if leader is not None and one.port == leader.port)


def wait_for_another(reader: ShadowReader, epoch: int) -> None:
    """Wait until the log tells of a leader after ``epoch``, and of something that it wrote."""
    reader.wait_for(lambda item: isinstance(item, Batch) and item.epoch > epoch and not item.is_control, "a new leader")


def assert_equals_disk(stock: StockQuorum, reader: ShadowReader) -> None:
    """Compare what was read with the copies of all nodes, as far as each goes."""
    read = reader.batches
    assert not [item for item in reader.read if isinstance(item, Gap)]
    assert [batch.base_offset for batch in read] == [0, *(batch.next_offset for batch in read[:-1])]
    for number in stock.cluster.nodes:
        # A node cuts off what it had and no majority, as soon as it hears of the next leader.
        wait_until_equal(partial(same_on_disk, stock.node(number), read), True, f"the copy of node {number}")


def same_on_disk(node: KafkaNode, read: Sequence[Batch]) -> bool:
    on_disk = [one for one in batches_on_disk(node.data[0]) if one.next_offset <= read[-1].next_offset]
    return len(on_disk) > 0 and on_disk == list(read[: len(on_disk)])


def fences(fenced: int) -> Callable[[Read], bool]:
    """Return a condition that holds for a batch which fences a broker (1), or unfences one (-1)."""

    def found(item: Read) -> bool:
        records = item.records if isinstance(item, Batch) else ()
        return any(
            record.name == "BrokerRegistrationChangeRecord" and record.values["Fenced"] == fenced for record in records
        )

    return found


def end_on_disk(node: KafkaNode) -> int:
    return batches_on_disk(node.data[0])[-1].next_offset


def test_the_cluster_is_known_by_its_id(stock: StockQuorum, reader: ShadowReader) -> None:
    assert reader.cluster_id == stock.cluster.cluster_id


def test_a_killed_broker_is_read_of(stock: StockQuorum, reader: ShadowReader) -> None:
    broker = stock.node(1)
    reader.wait_for(fences(-1), "the broker to be unfenced")
    broker.kill()
    reader.wait_for(fences(1), "the broker to be fenced")
    assert_equals_disk(stock, reader)
    broker.start()
    broker.wait_until_started()


def test_a_frozen_broker_is_read_of(stock: StockQuorum, reader: ShadowReader) -> None:
    broker = stock.node(1)
    begun = len(reader.read)
    broker.pause()
    try:
        wait_until(lambda: any(map(fences(1), reader.read[begun:])), "the broker to be fenced")
    finally:
        broker.resume()
    wait_until(lambda: any(map(fences(-1), reader.read[begun:])), "the broker to be unfenced")
    assert_equals_disk(stock, reader)


def test_a_reader_follows_when_the_active_controller_is_killed(stock: StockQuorum, reader: ShadowReader) -> None:
    node = active(stock, reader)
    epoch = reader.quorum.epoch
    node.kill()
    wait_for_another(reader, epoch)
    node.start()
    node.wait_until_started()
    assert_equals_disk(stock, reader)


def test_a_reader_follows_when_the_active_controller_freezes(stock: StockQuorum, reader: ShadowReader) -> None:
    node = active(stock, reader)
    epoch = reader.quorum.epoch
    node.pause()
    try:
        wait_for_another(reader, epoch)
    finally:
        node.resume()
    assert_equals_disk(stock, reader)


def test_nothing_is_read_that_no_majority_has(stock: StockQuorum, reader: ShadowReader) -> None:
    node = active(stock, reader)
    epoch = reader.quorum.epoch
    others = [stock.node(one.voter) for one in stock.voters if stock.node(one.voter) is not node]
    for other in others:
        other.pause()
    try:
        # The leader goes on to write until it resigns. Two batches at most are under way to the others.
        wait_until(lambda: end_on_disk(node) > reader.position.offset + 2, "records that no majority has")
        node.kill()
        lost = batches_on_disk(node.data[0])[-1]
    finally:
        for other in others:
            other.resume()
    wait_for_another(reader, epoch)
    node.start()
    node.wait_until_started()
    reader.wait_for_offset(lost.base_offset)
    assert lost.epoch == epoch and lost not in reader.batches
    assert_equals_disk(stock, reader)


def test_a_reader_goes_on_where_another_one_stopped(stock: StockQuorum, reader: ShadowReader) -> None:
    position = reader.position
    reader.stop()
    with ShadowReader(stock.endpoints, position) as next_reader:
        next_reader.wait_for_offset(position.offset)
        assert next_reader.error is None
        assert_equals_disk(stock, next_reader)
