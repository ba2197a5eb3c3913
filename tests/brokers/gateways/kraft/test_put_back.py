"""Bus and gateway are restored from a backup: no quorum epoch is used twice, and no broker mixes two histories."""

import shutil
import time
from pathlib import Path

import msgspec
import pytest

from brokers.launch.gateway import GatewayProcess
from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from brokers.wire.errors import ErrorCode
from brokers.wire.record_batch import decode_batches
from bus.embedded import EmbeddedBus
from bus.image import read_image
from controller_logic.gateways import EPOCH_MS
from tests.brokers.gateways.kraft.storages import beats, event, registered
from tests.support.bus_rows import back_up
from tests.support.controller_client import LOOPBACK, ControllerClient
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
_ALL = 1_000_000
# With no-op records an idle log grows too, and is soon longer than the lost one.
SETTINGS = {"broker_session_timeout_ms": 600_000, "metadata_max_idle_interval_ms": 300}


def topic(name: str) -> bytes:
    return event("create_topic", topic=name, partitions=1, replication_factor=1)


class Led:
    """An engine and one gateway with their files in ``folder``, to be started and stopped one by one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (port,) = free_ports(1)
        self._voter = Voter(100, LOOPBACK, port)
        self._cluster_id = random_cluster_id()
        self.bus = EmbeddedBus(folder / "bus.db")
        self.engine = RulesEngine()
        self.gateway = self._process()

    def _process(self) -> GatewayProcess:
        bus = str(self.folder / "bus.db")
        return GatewayProcess(self._voter, [self._voter], self._cluster_id, bus, self.folder / "gateway-100")

    def start_engine(self) -> None:
        self.engine = RulesEngine()
        self.engine.start(self.folder / "bus.db", **SETTINGS)

    def start_gateway(self) -> None:
        self.gateway.start()
        self.gateway.wait_until_started(TIMEOUT_S)

    def take(self, *events: bytes) -> None:
        """Publish events, and wait until they are decided."""
        seq = self.bus.publish(events)
        wait_until(lambda: self.bus.decided_seq() >= seq, "the events to be decided")

    def join(self, broker: int) -> None:
        self.take(registered(broker))
        self.take(*beats((broker, read_image(self.bus.image()).cluster.brokers[broker].broker_epoch)))

    def epochs(self) -> list[int]:
        """List the quorum epochs that this bus knows, in order."""
        decided = [msgspec.json.decode(one.body) for one in self.bus.decisions((0, -1), _ALL)]
        return [one["quorum_epoch"] for one in decided if one["kind"] == "quorum"]

    def client(self) -> ControllerClient:
        return ControllerClient(self._voter.port)

    def until_led(self, after: int) -> int:
        """Wait until the gateway leads in an epoch later than ``after``; return that epoch."""
        client = self.client()
        found = after

        def leads() -> bool:
            nonlocal found
            found = client.fetch(0, 0)["CurrentLeader"]["LeaderEpoch"]
            return found > after and client.fetch(0, found)["ErrorCode"] == ErrorCode.NONE

        wait_until(leads, f"an epoch after {after}")
        client.close()
        return found

    def read(self, epoch: int, name: str) -> tuple[int, int]:
        """Read the log as a broker does, up to a topic's record; return the offset and epoch where its batch ends."""
        client = self.client()
        at = offset = last_epoch = 0

        def is_told() -> bool:
            nonlocal at, offset, last_epoch
            response = client.fetch(offset, epoch, last_epoch)
            assert response["ErrorCode"] == ErrorCode.NONE, response
            for batch in decode_batches(response["Records"]):
                offset, last_epoch = batch.next_offset, batch.leader_epoch
                if any(name.encode() in value for _, value in batch.records):
                    at = offset
                    return True
            return False

        wait_until(is_told, f"topic {name} in the log")
        client.close()
        return at, last_epoch

    def back_up(self, into: Path) -> None:
        """Copy everything while it runs: the gateway's files first, because they follow from the bus."""
        shutil.copytree(self.folder / "gateway-100", into / "gateway-100")
        back_up(self.folder / "bus.db", into / "bus.db")

    def put_back(self, backup: Path) -> None:
        """Stop everything, and restore all files from a backup."""
        assert self.gateway.stop()
        self.engine.stop()
        self.bus.close()
        shutil.rmtree(self.folder)
        shutil.copytree(backup, self.folder)
        # Epochs are counted in steps of this length, and nobody restores a backup in less.
        time.sleep(EPOCH_MS / 1_000)
        self.bus = EmbeddedBus(self.folder / "bus.db")
        self.gateway = self._process()

    def end(self) -> None:
        self.gateway.kill()
        self.engine.stop()
        self.bus.close()


def lose(led: Led, epoch: int) -> list[tuple[int, int]]:
    """Add a broker, topics and quorum epochs that the restore will lose; return how far a broker had read them."""
    led.join(2)
    lost = []
    for number in range(2):
        name = f"lost-{number}"
        led.take(topic(name))
        lost.append(led.read(epoch, name))
        assert led.gateway.stop()
        led.start_gateway()
        epoch = led.until_led(epoch)
    led.take(topic("last"))
    return [*lost, led.read(epoch, "last")]


def check_who_is_led(led: Led, epoch: int, kept: tuple[int, int], lost: list[tuple[int, int]]) -> None:
    """Check that brokers that have read the lost part get no records, and that another broker continues."""
    # Although the log has grown beyond the lost records, these brokers do not get the new ones.
    client = led.client()
    wait_until(lambda: client.fetch(*kept[:1], epoch, kept[1])["HighWatermark"] > lost[-1][0] + 5, "more")
    for offset, last_epoch in lost:
        for broker in (1, 2):
            response = client.fetch(offset, epoch, last_epoch, replica=broker)
            assert response.get("ErrorCode") == ErrorCode.BROKER_NOT_AVAILABLE, (offset, last_epoch, broker, response)
    # A broker that has read nothing of the lost part continues.
    response = client.fetch(kept[0], epoch, kept[1], replica=1)
    assert (response["ErrorCode"], response["DivergingEpoch"]["Epoch"]) == (ErrorCode.NONE, -1)
    assert response["Records"]
    client.close()


@pytest.mark.parametrize("is_engine_first", [True, False], ids=["engine first", "gateway first"])
def test_a_restored_backup_repeats_no_epoch(tmp_path: Path, is_engine_first: bool) -> None:
    (tmp_path / "live").mkdir()
    led = Led(tmp_path / "live")
    try:
        led.start_engine()
        led.start_gateway()
        epoch = led.until_led(0)
        led.join(1)
        led.take(topic("kept"))
        kept = led.read(epoch, "kept")
        (tmp_path / "backup").mkdir()
        led.back_up(tmp_path / "backup")

        lost = lose(led, epoch)
        given_out = led.epochs()
        assert len(set(given_out)) == len(given_out) == 3

        led.put_back(tmp_path / "backup")
        known = led.epochs()
        assert given_out[: len(known)] == known != given_out
        if is_engine_first:
            led.start_engine()
            # Decisions made before any gateway is back must not be mistaken for the lost ones.
            led.take(topic("other"))
            led.start_gateway()
        else:
            led.start_gateway()
            led.start_engine()
        after = led.until_led(max(known))
        wait_until(lambda: led.epochs()[-1] == after, "the epoch on the bus")
        assert min(set(led.epochs()) - set(known)) > max(given_out)

        check_who_is_led(led, after, kept, lost)
    finally:
        led.end()
