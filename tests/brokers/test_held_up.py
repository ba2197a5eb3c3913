"""No healthy broker is fenced because the engine or a gateway stood still for longer than a session."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.launch.gateway import GatewayProcess
from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from brokers.wire.errors import ErrorCode
from bus.embedded import EmbeddedBus
from bus.interface import Bus
from state.decisions import Answer, BrokerDecision, QuorumDecision, decode
from state.reason import Reason
from tests.support.controller_client import LOOPBACK, ControllerClient
from tests.support.engine import Engine, by_rules, decided, decisions_of, encoded
from tests.support.freezing import freeze_process
from tests.support.gateway_in_process import SUPPORTED, heartbeat
from tests.support.mock_cluster import MockCluster
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.mock_brokers
SESSION_MS = 2_000
FROZEN_S = 5.0
AFTER_S = 5.0
BROKERS = (1, 2, 3)


def fenced(bus: Bus, after: int) -> list[BrokerDecision]:
    """List the decisions after the event ``after`` that fenced a broker because it was silent."""
    decisions = [decode(one.body) for one in bus.decisions((after, 1 << 31), 100_000)]
    silent = (Reason.BROKER_SESSION_EXPIRED, Reason.BROKER_CONNECTION_LOST)
    return [one for one in decisions if isinstance(one, BrokerDecision) and one.reason in silent]


def create_request(topic: str, timeout_ms: int) -> bytes:
    """Encode a request for a topic; the request's id is the topic's name."""
    fields = {"topic": topic, "partitions": 1, "replication_factor": 1}
    return encoded("create_topic", request_id=topic, timeout_ms=timeout_ms, **fields)


def answers(bus: Bus) -> dict[str, str]:
    """Return the error in the answer to each request for a topic."""
    decisions = [decode(one.body) for one in bus.decisions((0, -1), 100_000)]
    requests = [one for one in decisions if isinstance(one, Answer) and one.request == "create_topic"]
    return {str(one.request_id): one.error for one in requests}


@pytest.mark.spark
def test_a_frozen_engine_fences_no_broker_and_carries_out_no_expired_request(tmp_path: Path) -> None:
    cluster = MockCluster(tmp_path)
    engine = Engine(tmp_path, f"broker.session.timeout.ms={SESSION_MS}", "broker.heartbeat.interval.ms=300")
    try:
        engine.wait_ready(cluster.bus)
        cluster.start()
        seq = cluster.bus.last_seq()
        engine.freeze(cluster.bus_path)
        cluster.bus.publish([create_request("late", timeout_ms=1_000), create_request("patient", timeout_ms=600_000)])
        time.sleep(FROZEN_S)
        engine.signal_all(signal.SIGCONT)
        time.sleep(AFTER_S)
        decided(cluster.bus, cluster.bus.last_seq(), engine=engine)
        assert fenced(cluster.bus, seq) == []
        assert answers(cluster.bus) == {"late": "REQUEST_TIMED_OUT", "patient": "NONE"}
        # A broker that falls silent is fenced as before.
        cluster.kill(2)
        wait_until(lambda: [one.broker for one in fenced(cluster.bus, seq)] == [2], "it to be fenced")
        # It has claimed once more, unless the batch before was slow: then a tick told what waited.
        assert cluster.bus.claimed_epoch() <= 2
        assert engine.stop() == 0
        assert decisions_of(cluster.bus) == by_rules(cluster.bus).decisions
        assert "moved the checkpoint aside" not in engine.log.read_text()
    finally:
        cluster.stop()
        engine.kill()


class Beating:
    """A broker that sends heartbeats until ``stop``, each when the previous one was answered."""

    def __init__(self, broker: int, voter: Voter, cluster_id: str) -> None:
        self._client = ControllerClient(voter.port)
        listener = {"Name": "PLAINTEXT", "Host": LOOPBACK, "Port": 9_000 + broker, "SecurityProtocol": 0}

        def registered() -> bool:
            answer = self._client.ask(
                "BrokerRegistration",
                BrokerId=broker,
                ClusterId=cluster_id,
                IncarnationId=f"{broker:02d}AAAAAAAAAAAAAAAAAAAA",
                Listeners=[listener],
                LogDirs=[f"{broker:02d}LAAAAAAAAAAAAAAAAAAA"],
                Features=SUPPORTED,
            )
            # The gateway reads the decision that makes it the leader some milliseconds after it is on the bus.
            assert answer["ErrorCode"] in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER)
            self._epoch = answer["BrokerEpoch"]
            return bool(answer["ErrorCode"] == ErrorCode.NONE)

        wait_until(registered, "the broker to be registered")
        self._broker = broker
        self._ended = threading.Event()
        self.answers: list[bool] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.3):
            response = self._client.ask("BrokerHeartbeat", **heartbeat(self._broker, self._epoch))
            self.answers.append(response["ErrorCode"] == 0 and not response["IsFenced"])

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        self._client.close()


@pytest.fixture
def cluster_id() -> str:
    return random_cluster_id()


@pytest.fixture
def gateway(tmp_path: Path, cluster_id: str) -> Iterator[GatewayProcess]:
    """One gateway under an engine with short sessions."""
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", broker_session_timeout_ms=SESSION_MS)
    voter = Voter(100, LOOPBACK, free_ports(1)[0])
    gateway = GatewayProcess(voter, [voter], cluster_id, str(tmp_path / "bus.db"), tmp_path / "gateway")
    gateway.start()
    try:
        gateway.wait_until_started(TIMEOUT_S)
        yield gateway
    finally:
        gateway.kill()
        engine.stop()


def test_a_frozen_gateway_causes_no_fencing(gateway: GatewayProcess, cluster_id: str, tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    wait_until(lambda: any(isinstance(one, QuorumDecision) for one in _all(bus)), "the gateway to lead")
    brokers = [Beating(broker, gateway.voter, cluster_id) for broker in BROKERS]
    try:
        wait_until(lambda: all(any(one.answers) for one in brokers), "all to be active")
        seq = bus.last_seq()
        for _ in range(2):
            freeze_process(tmp_path / "bus.db", gateway.pid)
            time.sleep(FROZEN_S)
            gateway.resume()
            time.sleep(AFTER_S)
        assert fenced(bus, seq) == []
        assert all(one.answers[-1] for one in brokers)
        brokers.pop().stop()
        wait_until(lambda: [one.broker for one in fenced(bus, seq)] == [BROKERS[-1]], "it to be fenced")
    finally:
        for one in brokers:
            one.stop()
        bus.close()


def _all(bus: Bus) -> list[object]:
    return [decode(one.body) for one in bus.decisions((0, -1), 1_000)]
