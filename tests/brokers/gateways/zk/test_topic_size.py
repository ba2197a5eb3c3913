"""Topics whose znode would be larger than ZooKeeper takes are refused before the engine is asked."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from brokers.gateways.zk import topic_size, znodes
from brokers.gateways.zk.apis import topics
from brokers.gateways.zk.client.session import BYTES_AT_ONCE, WRITES_AT_ONCE, Session
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import ALTER_REASSIGNMENTS, CREATE_PARTITIONS, CREATE_TOPICS
from brokers.gateways.zk.term.admin_znodes import asked_by, requests_in
from brokers.gateways.zk.topic_size import ZNODE_BYTES_MAX, bytes_after_moves, topic_bytes
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from state.ids import NO_LEADER
from tests.brokers.gateways.zk.asked import answer, new
from tests.brokers.gateways.zk.decided import broker, led, topic
from tests.brokers.gateways.zk.zookeeper import Znode

JUTE_MAXBUFFER = 1_048_575
# What an operation takes in a transaction beside its path and its data: lengths, a version, an ACL.
OPERATION_BYTES_MAX = 100


def view_of(partitions: int = 0, replicas: tuple[int, ...] = (1, 2, 3), brokers: int = 4) -> ClusterView:
    """Return the view of a cluster with a topic t of so many partitions."""
    view = ClusterView()
    for number in range(1, brokers + 1):
        view.apply(broker(number))
    if partitions:
        view.apply(topic())
    for number in range(partitions):
        view.apply(led(partition=number, replicas=replicas))
    return view


@pytest.fixture(autouse=True)
def half_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer partitions reach it in less time."""
    monkeypatch.setattr(topic_size, "ZNODE_BYTES_MAX", ZNODE_BYTES_MAX // 2)


def errors(listed: list[Values]) -> dict[str, ErrorCode]:
    return {one["Name"]: one["ErrorCode"] for one in listed}


def test_a_znode_of_the_largest_size_fits_into_a_transaction() -> None:
    # The topic, its partitions/, and the check of the controller epoch.
    assert ZNODE_BYTES_MAX + 3 * OPERATION_BYTES_MAX < JUTE_MAXBUFFER
    assert BYTES_AT_ONCE + WRITES_AT_ONCE * OPERATION_BYTES_MAX < JUTE_MAXBUFFER


@pytest.mark.parametrize("replicas", [(1,), (1, 2, 3), (10, 200, 3_000)])
def test_the_size_of_a_znode_is_known_without_writing_it(replicas: tuple[int, ...]) -> None:
    view = view_of(1_100, replicas)
    view.apply(led(partition=7, replicas=(4, *replicas), adding_replicas=(4,), removing_replicas=replicas[:1]))
    written = len(znodes.topic_text(view.topics["t"]))
    assert written <= topic_bytes(view.topics["t"]) <= written * 1.1 + 200


@pytest.mark.parametrize("target", [(4,), (1, 2, 3, 4), (2, 1)])
def test_the_size_after_moves_is_that_of_the_znode_that_is_written_then(target: tuple[int, ...]) -> None:
    view, held = view_of(200), (1, 2, 3)
    expected = bytes_after_moves(view.topics["t"], dict.fromkeys(range(150), target))
    adding, removing = (
        tuple([one for one in some if one not in others]) for some, others in [(target, held), (held, target)]
    )
    for number in range(150):
        moving = {"adding_replicas": adding, "removing_replicas": removing}
        view.apply(led(partition=number, replicas=(*target, *removing), **moving))
    assert expected == topic_bytes(view.topics["t"])
    assert len(znodes.topic_text(view.topics["t"])) <= expected


def test_a_new_topic_that_is_too_large_is_refused_and_the_others_are_created() -> None:
    one_by_one = [{"PartitionIndex": number, "BrokerIds": [1, 2, 3, 4]} for number in range(30_000)]
    asked = [new("fits", 29_000, 3), new("large", 40_000, 3), new("wide", 35_000, -1), new("given", -1, -1, one_by_one)]
    response, events = answer(view_of(), CREATE_TOPICS, topics.create_topics, Topics=asked, validateOnly=False)
    refused = dict.fromkeys(["large", "wide", "given"], ErrorCode.INVALID_PARTITIONS)
    assert errors(response["Topics"]) == {"fits": ErrorCode.NONE} | refused
    assert [event.topic for event in events] == ["fits"]
    [message] = [one["ErrorMessage"] for one in response["Topics"] if one["Name"] == "large"]
    assert message == "large: its znode in ZooKeeper would have up to 680000 bytes, and 500000 are allowed"


def test_the_sizes_that_the_engine_gives_count() -> None:
    view = view_of()
    view.configs["cluster", None] = {"num.partitions": "60000", "default.replication.factor": "2"}
    asked = [new("many", -1, -1), new("few", 30_000, -1)]
    response, _ = answer(view, CREATE_TOPICS, topics.create_topics, Topics=asked, validateOnly=True)
    assert errors(response["Topics"]) == {"few": ErrorCode.NONE, "many": ErrorCode.INVALID_PARTITIONS}


def test_partitions_are_added_while_the_znode_fits() -> None:
    view = view_of(25_000)
    assigned = [{"BrokerIds": [1, 2, 3]}] * 20_000
    for count, assignments, error in [
        (26_000, None, ErrorCode.NONE),
        (70_000, None, ErrorCode.INVALID_PARTITIONS),
        (45_000, assigned, ErrorCode.INVALID_PARTITIONS),
        (25_010, assigned[:10], ErrorCode.NONE),
    ]:
        asked = {"Topics": [{"Name": "t", "Count": count, "Assignments": assignments}], "ValidateOnly": False}
        response, events = answer(view, CREATE_PARTITIONS, topics.create_partitions, **asked)
        assert errors(response["Results"]) == {"t": error}, count
        assert len(events) == (error == ErrorCode.NONE)
    unknown = {"Topics": [{"Name": "u", "Count": 70_000, "Assignments": None}], "ValidateOnly": False}
    assert len(answer(view, CREATE_PARTITIONS, topics.create_partitions, **unknown)[1]) == 1, "the engine refuses it"


def moved(numbers: Sequence[int], replicas: list[int] | None) -> list[Values]:
    return [{"PartitionIndex": number, "Replicas": replicas} for number in numbers]


def test_moves_that_make_a_znode_too_large_are_refused_and_cancellations_are_not() -> None:
    view = view_of(20_000)
    for count, error in [(100, ErrorCode.NONE), (20_000, ErrorCode.POLICY_VIOLATION)]:
        asked = [{"Name": "t", "Partitions": moved(range(count), [4]) + moved([0], None)}]
        response, events = answer(
            view,
            ALTER_REASSIGNMENTS,
            topics.alter_partition_reassignments,
            Topics=asked,
            AllowReplicationFactorChange=True,
        )
        given = [one["ErrorCode"] for each in response["Responses"] for one in each["Partitions"]]
        assert sorted(given) == sorted([error] * count + [ErrorCode.NONE])
        assert [event.replicas for event in events].count(None) == 1
        assert len(events) == (1 if error else count + 1)


class OneZnode:
    """ZooKeeper with a list of moves."""

    def __init__(self, text: str) -> None:
        self.text = text.encode()

    def children(self, path: str, watch: bool) -> list[str]:
        return []

    def read(self, path: str, watch: bool) -> tuple[bytes, Znode] | None:
        return (self.text, Znode(self.text, 0, 1, 1, 1)) if path == znodes.REASSIGN_PARTITIONS else None


def test_a_list_of_moves_in_zookeeper_has_the_same_limit() -> None:
    view = view_of(20_000)
    view.apply(led(topic="u", topic_id="u" * 22, leader=NO_LEADER))
    listed = [f'{{"topic":"t","partition":{number},"replicas":[4]}}' for number in range(20_000)]
    listed.append('{"topic":"u","partition":0,"replicas":[4]}')
    session = OneZnode(f'{{"version":1,"partitions":[{",".join(listed)}]}}')
    [asked] = asked_by(requests_in(cast(Session, session)), view, 1)
    assert [Place(one.topic, one.partition) for one in cast(list[Any], asked.events)] == [Place("u", 0)]
