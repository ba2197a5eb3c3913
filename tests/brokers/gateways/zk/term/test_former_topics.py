"""Topics that were deleted while no gateway led: which partitions brokers must forget, and when they are told."""

from brokers.gateways.zk.channels.requests.news import Everything
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.mirror.stored import StoredState, StoredTopic
from brokers.gateways.zk.term.former_topics import former_partitions
from brokers.gateways.zk.znodes import StateZnode
from tests.brokers.gateways.zk.decided import ID, OTHER_ID, Told, broker, led, lines, topic

STATES = {number: StoredState(StateZnode(1, 4, 3, (1, 2, 3)), 9) for number in (0, 1)}
TEXT = f'{{"version":3,"partitions":{{"0":[1,2,3],"1":[1,2,3]}},"topic_id":"{ID}"}}'.encode()
STORED = StoredTopic("t", TEXT, None, STATES)


def test_a_topic_that_is_gone_is_forgotten() -> None:
    assert list(former_partitions(STORED, ClusterView())) == [Place("t", 0), Place("t", 1)]


def test_a_topic_that_is_there_or_was_never_led_is_not() -> None:
    view = ClusterView()
    assert former_partitions(STORED._replace(states={}), view) == {}
    for decision in (led(), topic()):
        view.apply(decision)
    assert former_partitions(STORED, view) == {}


def test_a_topic_that_nobody_led_need_not_be_readable() -> None:
    assert former_partitions(StoredTopic("t", b"", None, {}), ClusterView()) == {}


def test_brokers_are_told_of_them_before_anything_else() -> None:
    told = Told()
    for decision in (broker(1), led(topic_id=OTHER_ID), topic(topic_id=OTHER_ID)):
        told.view.apply(decision)
    told.view.former = former_partitions(STORED, told.view)
    told.pending.tell_all(1, Everything(told.view))
    # Partition 0 is another one by now, which replaces the former one.
    assert lines(told.sent()) == [
        "UpdateMetadata live=1,100 t-1:-2@4",
        "LeaderAndIsr t-0:1@0",
        "UpdateMetadata live=1,100 t-0:1@0",
    ]
