"""Topics of a bus on Kafka that are not yet, or no longer, as long as the newest mark says."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from bus.interface import BusError, Decided, Page
from bus.kafka import connection, marks, state_reader
from bus.kafka.bus import KafkaBus
from tests.support.commits import readable
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kafka_bus


def test_the_image_contains_what_this_job_has_committed(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    bus.commit(epoch, 1, [], [Page(0, 0, b"old")])
    # It holds back what follows in this topic, as a broker does that is late to write the end of a transaction.
    late = Producer({"bootstrap.servers": bus.address.servers, "transactional.id": bus.address.prefix, "log_level": 0})
    late.init_transactions(TIMEOUT_S)
    late.begin_transaction()
    late.produce(bus.address.state, b"", b"late")
    assert late.flush(TIMEOUT_S) == 0
    bus.commit(epoch, 2, [], [Page(0, 0, b"new")])
    with monkeypatch.context() as patched, pytest.raises(BusError, match="the state at seq 2 cannot be read"):
        patched.setattr(state_reader, "REQUEST_TIMEOUT_S", 0.2)
        bus.image()
    late.abort_transaction(TIMEOUT_S)
    assert bus.image() == (2, [Page(0, 0, b"new")])


def make_again(bus: KafkaBus, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bus.address.servers})
    admin.delete_topics([topic], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)
    wait_until(lambda: topic not in admin.list_topics().topics, "the topic to be gone")
    KafkaBus(str(bus.address)).close()


def followed(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> tuple[int, KafkaBus]:
    """Have five decisions followed, and then make their topic again; return the controller epoch and the follower."""
    monkeypatch.setattr(connection, "LOST_END_TIMEOUT_S", 0.5)
    epoch = bus.claim("job", {}, 1).controller_epoch
    bus.commit(epoch, 1, [Decided(1, nth, b"one") for nth in range(5)], [])
    wait_until(lambda: bus.decided_seq() == 1, "the decisions to be readable")
    follower = KafkaBus(str(bus.address))
    assert len(follower.decisions((0, -1), 10)) == 5
    make_again(bus, bus.address.decisions)
    return epoch, follower


def test_decisions_that_are_no_longer_there_are_an_error_for_followers(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, follower = followed(bus, monkeypatch)
    wait_until(lambda: has_news(follower), "the follower to notice")
    lost = "decisions ends at offset 0, but was written up to offset"
    for place in ((1, 4), (0, -1)):
        with pytest.raises(BusError, match=lost):
            follower.decisions(place, 10)
    follower.close()
    fresh = KafkaBus(str(bus.address))
    with pytest.raises(BusError, match=lost):
        fresh.decisions((1, 4), 10)
    fresh.close()


def test_a_follower_that_kafka_lost_decisions_of_does_not_go_on_with_the_next_ones(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch, follower = followed(bus, monkeypatch)
    bus.commit(epoch, 2, [Decided(2, 0, b"two")], [])
    wait_until(lambda: bus.decided_seq() == 2, "the next decision to be readable")
    for _ in range(2):
        with pytest.raises(BusError, match=r"decisions ends at offset 2, but was written up to offset [67]:"):
            follower.decisions((1, 4), 10)
    follower.close()


def test_a_job_does_not_claim_and_nobody_reads_the_state_if_the_newest_claims_are_lost(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "LOST_END_TIMEOUT_S", 0.5)
    for through in (1, 2):
        epoch = bus.claim("job", {}, 1).controller_epoch
        bus.commit(epoch, through, [], [Page(0, 0, b"page")])
    readable(2, bus)
    make_again(bus, bus.address.controller)
    fresh = KafkaBus(str(bus.address))
    lost = "controller ends with controller epoch 0 and seq 0, but the state is of epoch 2 and seq 2: it was deleted"
    with pytest.raises(BusError, match=lost):
        fresh.image()
    with pytest.raises(BusError, match=lost):
        fresh.claim("next", {}, 1)
    assert fresh.claimed_epoch() == 0
    # The job that holds the epoch knows it, and was not fenced.
    bus.commit(epoch, 3, [], [Page(0, 0, b"more")])
    assert bus.image() == (3, [Page(0, 0, b"more")])
    fresh.close()


def has_news(follower: KafkaBus) -> bool:
    try:
        return follower.changed()
    except BusError:
        return True
