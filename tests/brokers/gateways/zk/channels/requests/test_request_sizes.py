"""The size of a request to a broker, and the moment when it is made."""

from collections.abc import Sequence

from brokers.gateways.zk.channels.requests.building import Outgoing, requests_of
from brokers.gateways.zk.channels.requests.pending import Batch
from brokers.gateways.zk.messages import LEADER_AND_ISR, UPDATE_METADATA
from tests.brokers.gateways.zk.decided import SENDER, Told, broker, led, topic

BROKERS = [broker(1), broker(2), broker(3)]


def sizes_of(requests: Sequence[Outgoing]) -> list[int]:
    return [len(request.told) for request in requests if request.api_key == LEADER_AND_ISR]


def some(batch: Batch | None) -> Batch:
    assert batch is not None
    return batch


def test_requests_have_a_bound() -> None:
    told = Told(1, partitions_max=100_000)
    told.hear(*BROKERS)
    told.hear(*[led(partition=number, is_new=True) for number in range(2_001)], topic())
    assert sizes_of(told.sent()) == [2_000, 1]
    told.hear(*[led(leader_epoch=1, partition=number) for number in range(2_001)])
    assert sizes_of(told.sent()) == [2_000, 1]


def test_a_broker_that_starts_hears_of_all_its_logs_in_one_request() -> None:
    # With the first one it forgets the high watermarks that it had noted of all others.
    told = Told(1, partitions_max=100_000)
    told.hear(*BROKERS)
    told.hear(*[led(partition=number, is_new=number > 5_000) for number in range(8_000)], topic())
    assert sizes_of(told.sent()) == [5_001, 2_000, 999]


def test_requests_say_what_was_known_when_the_first_one_was_made() -> None:
    told = Told(1, partitions_max=100_000)
    told.hear(*BROKERS)
    told.hear(*[led(leader=2, partition=number, is_new=True) for number in range(2_001)], topic())
    requests = requests_of(some(told.pending.take()), broker(1), told.view, told.states, SENDER, {})
    alive = next(requests).values["LiveBrokers"]
    told.hear(broker(2, "fenced"), *[led(leader=3, leader_epoch=1, partition=number) for number in range(2_001)])
    later = list(requests)
    assert {one["BrokerId"] for request in later for one in request.values.get("LiveLeaders", ())} == {2}
    assert all(request.values["LiveBrokers"] == alive for request in later if request.api_key == UPDATE_METADATA)
