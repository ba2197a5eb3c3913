"""The cluster as decisions describe it."""

import time

from brokers.gateways.zk.cluster_view import ClusterView
from tests.brokers.gateways.zk.decided import ID, OTHER_ID, led, topic

TOPICS = 3_000


def found(view: ClusterView) -> list[str]:
    """Return the ids by which a topic is found."""
    return [one for one in (ID, OTHER_ID) if (held := view.topic_of_id(one)) is not None and held.topic_id == one]


def test_a_topic_is_found_by_its_id_while_it_is_there() -> None:
    view = ClusterView()
    view.apply(topic())
    assert found(view) == [ID]
    # Another topic has the name now.
    view.apply(led(topic_id=OTHER_ID))
    assert found(view) == [OTHER_ID]
    view.apply(topic("deleted", OTHER_ID))
    assert found(view) == []


def test_a_topic_is_found_by_its_id_however_many_there_are() -> None:
    # A leader of many partitions asks for all their ISRs at once, and each is looked up.
    view = ClusterView()
    ids = [f"{number:021}Q" for number in range(TOPICS)]
    for number, one in enumerate(ids):
        view.apply(led(topic=f"t{number}", topic_id=one))
    began_s = time.process_time()
    assert all(view.topic_of_id(one) for one in ids)
    assert time.process_time() - began_s < 0.05
