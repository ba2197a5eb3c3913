"""Gateways as processes: killed, frozen, started twice, and on another cluster's bus."""

import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.gateways.kraft.following.decision_applier import SupersededError
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.security.audit_log import FILE_NAME
from brokers.launch.gateway import GatewayProcess
from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.ports import free_ports
from brokers.launch.service import ServiceError
from brokers.voters import Voter
from brokers.wire.errors import ErrorCode
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.image import read_image
from tests.brokers.gateways.kraft.apis.topic_requests import new_topic
from tests.brokers.gateways.kraft.storages import beats, event, follow, opened, registered, topic, whole
from tests.support.controller_client import LOOPBACK, ControllerClient
from tests.support.freezing import freeze_process
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
KILLS = 20


def join(bus: EmbeddedBus) -> None:
    """Register and unfence three brokers."""
    seq = bus.publish([registered(broker) for broker in (1, 2, 3)])
    wait_until(lambda: bus.decided_seq() >= seq, "the registrations")
    epochs = {broker.broker: broker.broker_epoch for broker in read_image(bus.image()).cluster.brokers.values()}
    bus.publish(beats(*epochs.items()))


class Gateways:
    """Two gateways, not yet started, and an engine that decides what ``publish`` puts on the bus."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bus_path = folder / "bus.db"
        self.bus = EmbeddedBus(self.bus_path)
        self.engine = RulesEngine()
        self.engine.start(self.bus_path, broker_session_timeout_ms=600_000)
        self.cluster_id = random_cluster_id()
        self.voters = [Voter(100 + number, LOOPBACK, port) for number, port in enumerate(free_ports(2))]
        self.processes = {voter.voter: self.process(voter.voter, self.bus_path) for voter in self.voters}
        join(self.bus)

    def process(self, gateway: int, bus: Path) -> GatewayProcess:
        voter = self.voters[gateway - 100]
        return GatewayProcess(voter, self.voters, self.cluster_id, str(bus), self.folder / f"gateway-{gateway}")

    def start(self, gateway: int) -> None:
        self.processes[gateway].start()
        self.processes[gateway].wait_until_started(TIMEOUT_S)

    def client(self, gateway: int) -> ControllerClient:
        return ControllerClient(self.voters[gateway - 100].port)

    @property
    def leader(self) -> tuple[int, int]:
        quorum = read_image(self.bus.image()).cluster.quorum
        return quorum.voter, quorum.quorum_epoch

    def log(self, gateway: int) -> bytes:
        """Read the metadata log on a gateway's disk."""
        [path] = (self.folder / f"gateway-{gateway}" / "log").glob("*.log")
        return path.read_bytes()

    def settle(self) -> None:
        """Publish one more event, and wait until both gateways have all decisions."""
        before = {gateway: len(self.log(gateway)) for gateway in self.processes}
        seq = self.bus.publish([topic(f"last-{time.monotonic_ns()}")])
        wait_until(lambda: self.bus.decided_seq() >= seq, "the end")
        sizes = dict.fromkeys(self.processes, -1)

        def quiet() -> bool:
            nonlocal sizes
            last, sizes = sizes, {gateway: len(self.log(gateway)) for gateway in self.processes}
            time.sleep(0.5)
            return sizes == last and all(sizes[gateway] > before[gateway] for gateway in sizes)

        wait_until(quiet, "the logs to stand still")

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
        self.engine.stop()
        self.bus.close()


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Gateways]:
    gateways = Gateways(tmp_path)
    yield gateways
    gateways.stop()


def test_the_audit_log_is_in_the_gateways_folder(gateways: Gateways) -> None:
    folder = gateways.folder / "gateway-100"
    given = (gateways.voters[0], gateways.voters[:1], gateways.cluster_id, str(gateways.bus_path), folder)
    gateways.processes[100] = process = GatewayProcess(
        *given, {"super.users": "User:admin", "allow.authorizer.on.plaintext": "true"}
    )
    gateways.start(100)
    client = gateways.client(100)

    def is_refused() -> bool:
        [refused] = client.ask("CreateTopics", Topics=[new_topic("t")])["Topics"]
        # Until the engine has named the gateway.
        assert refused["ErrorCode"] in (ErrorCode.NOT_CONTROLLER, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return bool(refused["ErrorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    wait_until(is_refused, "a refusal")
    client.close()
    written = folder / FILE_NAME
    wait_until(lambda: written.exists() and '"Denied"' in written.read_text(), "the refusal to be written down")
    assert not (process.log_directory / FILE_NAME).exists()


def _expected_log(folder: Path, bus: EmbeddedBus) -> bytes:
    """Return the log that an undisturbed gateway writes from all decisions."""
    storage = opened(folder / "expected", bus)
    follow(storage, bus, (100,))
    data = whole(storage)
    storage.close()
    return data


def test_a_gateway_killed_at_any_moment_continues_with_the_same_bytes(gateways: Gateways, tmp_path: Path) -> None:
    draw = random.Random(20)
    ended = threading.Event()

    def publish() -> None:
        for number in range(100_000):
            if ended.wait(0.02):
                return
            name = f"t{number % 40}"
            gateways.bus.publish(
                [
                    topic(f"t{number}")
                    if number < 40
                    else event(
                        "alter_config", now_ms(), entity="topic", name=name, config={"retention.ms": str(number)}
                    ),
                ]
            )

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    try:
        gateways.start(100)
        gateways.start(101)
        killed = gateways.processes[100]
        for number in range(KILLS):
            if number % 2:
                # The kill hits while it reads its log, while it reads missed decisions, or right after its start.
                time.sleep(draw.uniform(0.2, 1.5))
            else:
                killed.wait_until_started(TIMEOUT_S)
                time.sleep(draw.uniform(0, 0.5))
            held = gateways.log(100)
            killed.kill()
            # The other gateway has the same bytes there, so everything that was served has lasted.
            wait_until(lambda held=held: gateways.log(101).startswith(held), "the other to have as much")
            killed.start()
        killed.wait_until_started(TIMEOUT_S)
    finally:
        ended.set()
        thread.join(TIMEOUT_S)
    gateways.settle()
    assert gateways.log(100) == gateways.log(101) == _expected_log(tmp_path, gateways.bus)
    assert gateways.leader[1] > 1


def test_a_gateway_does_not_start_on_another_clusters_bus(gateways: Gateways, tmp_path: Path) -> None:
    gateways.start(100)
    gateways.bus.publish([topic(f"t{number}") for number in range(5)])
    wait_until(lambda: b"t4" in gateways.log(100), "the topics to be in the log")
    assert gateways.processes[100].stop()
    held = gateways.log(100)

    behind = EmbeddedBus(tmp_path / "behind.db")
    said = _refused(gateways, tmp_path / "behind.db")
    assert "the metadata log ends at offset" in said
    assert "the decisions on the bus at 0" in said
    behind.close()

    other = EmbeddedBus(tmp_path / "other.db")
    engine = RulesEngine()
    engine.start(tmp_path / "other.db")
    join(other)
    seq = other.publish([topic(f"u{number}") for number in range(99)])
    wait_until(lambda: other.decided_seq() >= seq, "all to be decided")
    engine.stop()
    other.close()
    said = _refused(gateways, tmp_path / "other.db")
    assert "the metadata log holds records of decision" in said
    assert "and the decisions on the bus" in said

    assert gateways.log(100) == held, "what refuses to start alters nothing"
    gateways.start(100)


def _refused(gateways: Gateways, bus: Path) -> str:
    process = gateways.process(100, bus)
    process.start()
    with pytest.raises(ServiceError, match="ended by itself") as refused:
        process.wait_until_started(TIMEOUT_S)
    return str(refused.value)


def test_a_frozen_gateway_no_longer_leads_when_it_wakes(gateways: Gateways) -> None:
    gateways.start(100)
    gateways.start(101)
    wait_until(lambda: gateways.leader[0] == 100, "the first to lead")
    epoch = gateways.leader[1]
    frozen = gateways.client(100)
    wait_until(lambda: frozen.fetch(0, epoch)["ErrorCode"] == ErrorCode.NONE, "the first to know it")
    freeze_process(gateways.bus_path, gateways.processes[100].pid)
    wait_until(lambda: gateways.leader[0] == 101, "the other to lead")
    after = gateways.leader[1]
    gateways.bus.publish([topic("while-frozen")])
    leading = gateways.client(101)
    wait_until(lambda: b"while-frozen" in leading.fetch(0, after)["Records"], "the topic")
    gateways.processes[100].resume()

    def is_refused() -> bool:
        response = frozen.fetch(0, epoch)
        # Until it has read the decision about the new leader it serves only decided records.
        assert leading.fetch(0, after)["Records"].startswith(response["Records"])
        return bool(response["ErrorCode"] == ErrorCode.FENCED_LEADER_EPOCH)

    wait_until(is_refused, "the old epoch to be refused")
    response = frozen.fetch(0, after)
    assert response["ErrorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert response["CurrentLeader"] == {"LeaderId": 101, "LeaderEpoch": after}
    assert frozen.ask("BrokerHeartbeat", BrokerId=1, BrokerEpoch=1)["ErrorCode"] == ErrorCode.NOT_CONTROLLER
    gateways.settle()
    assert gateways.log(100) == gateways.log(101)


def test_a_gateway_that_was_started_again_elsewhere_stops(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    first = quorum.gateways[100]
    try:
        shutil.copytree(tmp_path / "gateway-100", tmp_path / "copy")
        port = quorum.start_elsewhere(100, tmp_path / "copy")
        wait_until(lambda: first.has_ended, "the first to stop")
        with pytest.raises(BaseExceptionGroup) as ended:
            first.stop()
        assert ended.group_contains(SupersededError, match="another start of gateway 100 leads")
        second = ControllerClient(port)
        # It reads the decision that makes it the leader slightly later than the first one.
        wait_until(
            lambda: second.fetch(0, quorum.state.quorum_epoch)["ErrorCode"] == ErrorCode.NONE,
            "the second to lead",
        )
    finally:
        quorum.stop()


def test_a_directory_belongs_to_one_gateway_at_a_time(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    try:
        with pytest.raises(StorageError, match="in use by another gateway"):
            quorum.start_elsewhere(100, tmp_path / "gateway-100")
        client = quorum.client()
        assert client.fetch(0, quorum.state.quorum_epoch)["ErrorCode"] == ErrorCode.NONE
        client.close()
    finally:
        quorum.stop()
