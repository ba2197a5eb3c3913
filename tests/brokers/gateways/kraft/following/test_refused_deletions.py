"""A gateway whose clock is far ahead when it reports a deletion: the topic is deleted once the clock is right."""

from pathlib import Path

import msgspec
import pytest

from brokers.gateways.kraft.following import deletions
from bus.clock import now_ms
from state.decisions import Rejected, decode
from state.events import BrokerRegister
from tests.brokers.gateways.kraft.apis.topic_requests import created
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until

HOUR_MS = 3_600_000


def test_a_topic_does_not_stay_in_deletion_after_its_report_was_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    quorum = InProcessQuorum(tmp_path, gateway_heartbeat_interval_ms=20)
    client = quorum.client()
    try:
        quorum.join(client, 1)
        # Without a broker of another kind no report is awaited.
        quorum.bus.publish([msgspec.json.encode(BrokerRegister(time_ms=now_ms(), broker=2, incarnation="mock"))])
        created(client, "t", replicas=1)
        monkeypatch.setattr(deletions, "now_ms", lambda: now_ms() + HOUR_MS)
        client.forward("DeleteTopics", Topics=[{"Name": "t"}])

        def fetch() -> None:
            epoch = quorum.state.quorum_epoch
            end = client.fetch(0, epoch)["HighWatermark"]
            client.fetch(end, epoch, epoch, replica=1)

        def is_refused() -> bool:
            fetch()
            decisions = (decode(one.body) for one in quorum.bus.decisions((0, -1), 10_000))
            return any(isinstance(one, Rejected) and "replica_report" in one.raw for one in decisions)

        def is_deleted() -> bool:
            fetch()
            return all(topic["topic"] != "t" for topic in quorum.view()["topics"])

        wait_until(is_refused, "the report to be refused")
        assert not is_deleted()
        monkeypatch.setattr(deletions, "now_ms", now_ms)
        wait_until(is_deleted, "the topic to be gone")
    finally:
        client.close()
        quorum.stop()
