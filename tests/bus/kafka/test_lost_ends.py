"""Topics of a bus on Kafka that are not yet, or no longer, as long as the newest mark says."""

import pytest
from confluent_kafka import Producer

from bus.interface import BusError, Page
from bus.kafka import state_reader
from bus.kafka.bus import KafkaBus
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.cluster


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
