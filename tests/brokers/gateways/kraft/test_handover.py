"""A gateway that is stopped cleanly hands over: brokers waiting at it learn the new leader at once."""

from pathlib import Path
from threading import Thread
from typing import Any

from brokers.wire.errors import ErrorCode
from state.decisions import Rejected, decode
from tests.brokers.gateways.kraft.apis.topic_requests import created
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum, heartbeat
from tests.support.waiting import TIMEOUT_S, wait_until


def test_a_waiting_fetch_is_answered_with_the_new_leader(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, 2, fetch_max_wait_ms=60_000)
    try:
        # The timeout is long, so that no gateway takes over because another fell silent.
        quorum.decide_by(controller_quorum_fetch_timeout_ms=600_000)
        old, new = quorum.client(100), quorum.client(101)
        epochs = quorum.join(old, 1)
        end = old.fetch(0, 1)["HighWatermark"]
        response: dict[str, Any] = {}

        def wait() -> None:
            response.update(old.fetch(end, 1, 1, high_watermark=end, MaxWaitMs=60_000))

        waiting = Thread(target=wait)
        waiting.start()
        quorum.gateways[100].stop()
        waiting.join(TIMEOUT_S)
        assert response["ErrorCode"] in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        assert response["CurrentLeader"] == {"LeaderId": 101, "LeaderEpoch": 2}
        assert new.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == ErrorCode.NONE
        old.close()
        new.close()
    finally:
        quorum.stop()


def test_the_only_gateway_stops_and_leads_again_when_it_is_back(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    try:
        quorum.gateways[100].stop()
        assert (quorum.state.voter, quorum.state.quorum_epoch) == (100, 1)
        quorum.start(100)
        assert (quorum.state.voter, quorum.state.quorum_epoch) == (100, 2)
    finally:
        quorum.stop()


def test_a_gateway_stops_even_if_no_engine_answers(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, hand_over_timeout_ms=50)
    try:
        quorum.engine.stop()
        quorum.gateways[100].stop()
    finally:
        quorum.stop()


def test_a_new_leader_does_not_report_what_the_former_one_has_reported(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, 2)
    old, new = quorum.client(100), quorum.client(101)
    try:
        # The timeout is long, so that no gateway takes over because another fell silent.
        quorum.decide_by(controller_quorum_fetch_timeout_ms=600_000)
        quorum.join(old, 1, 2)

        def fetch(client: ControllerClient) -> None:
            epoch = quorum.state.quorum_epoch
            end = client.fetch(0, epoch)["HighWatermark"]
            client.fetch(end, epoch, epoch, replica=1)

        def removed(topic: str, by: ControllerClient) -> None:
            created(by, topic, replicas=2)
            partition = {"PartitionIndex": 0, "Replicas": [2]}
            by.forward("AlterPartitionReassignments", Topics=[{"Name": topic, "Partitions": [partition]}])
            assert "1" in quorum.partition(topic)["removed_replicas"]

            def is_removed() -> bool:
                fetch(by)
                return not quorum.partition(topic)["removed_replicas"]

            wait_until(is_removed, f"the report that broker 1 has removed {topic}-0")

        removed("before", old)
        quorum.gateways[100].stop()
        assert quorum.state.voter == 101
        # Reports are decided in order, so a needless one would be decided before this one.
        removed("after", new)
        decisions = [decode(one.body) for one in quorum.bus.decisions((0, -1), 10_000)]
        assert [one.raw for one in decisions if isinstance(one, Rejected)] == []
    finally:
        for client in (old, new):
            client.close()
        quorum.stop()
