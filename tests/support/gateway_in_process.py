"""Gateways in threads of this process, with the rules in another thread: quick to start, with real sockets."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from brokers.gateways.kraft.gateway import Gateway
from brokers.gateways.kraft.security.settings import security_of
from brokers.gateways.kraft.settings import Identity, settings_of
from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from bus.image import read_image, view_of_image
from state.decisions import encode
from state.events import RaiseLevel
from state.level import FIRST_LEVEL
from state.metadata_quorum import Quorum as QuorumState
from tests.support.controller_client import LOOPBACK, ControllerClient
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

# These are long, so that a slow machine alone neither fences a broker nor moves a leader.
POLICY = {"broker_session_timeout_ms": 600_000, "auto_leader_rebalance_enable": False}
# Also long, so that a gateway on a slow disk or processor does not take itself for cut off from the bus.
GATEWAY_SETTINGS = {"controller_quorum_fetch_timeout_ms": 20_000, "allow_authorizer_on_plaintext": True}

# The features of a broker of Kafka 4.1 that the metadata log mentions.
SUPPORTED = [
    {"Name": "metadata.version", "MinSupportedVersion": 7, "MaxSupportedVersion": 27},
    {"Name": "group.version", "MinSupportedVersion": 0, "MaxSupportedVersion": 1},
    {"Name": "transaction.version", "MinSupportedVersion": 0, "MaxSupportedVersion": 2},
]


class GatewayThread:
    """A gateway that runs in a thread until ``stop``; ``error`` is the exception that ended it."""

    def __init__(self, identity: Identity, bus_path: Path, **settings: Any) -> None:
        self.error: BaseException | None = None
        self.bus = EmbeddedBus(bus_path)
        self._loop = asyncio.new_event_loop()
        named = {name.replace("_", "."): value for name, value in settings.items()}
        given = settings_of(named)
        self.gateway = Gateway(identity, given, self.bus, security_of(given))
        self._thread = threading.Thread(target=self._run, name=f"gateway-{identity.gateway}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self.gateway.run())
        except BaseException as error:
            self.error = error
        finally:
            self._loop.close()
            self.bus.close()

    def occupy_threads(self, until: threading.Event) -> None:
        """Keep the loop's threads busy, as lookups of names do while no name server answers."""

        def occupy() -> None:
            for _ in range(64):
                self._loop.run_in_executor(None, until.wait)

        self._loop.call_soon_threadsafe(occupy)

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop the gateway cleanly. If it had ended with an error, raise that."""
        if not self.has_ended:
            self._loop.call_soon_threadsafe(self.gateway.stop)
            self._thread.join(TIMEOUT_S)
        assert self.has_ended
        if self.error is not None:
            raise self.error


class InProcessQuorum:
    """Gateways (100, 101, …) and the engine's rules on a bus under ``directory``, raised to ``level`` before them."""

    def __init__(self, directory: Path, gateways: int = 1, level: int = FIRST_LEVEL, **settings: Any) -> None:
        self.directory = directory
        self.bus_path = directory / "bus.db"
        self.bus = EmbeddedBus(self.bus_path)
        self.engine = RulesEngine()
        self.engine.start(self.bus_path, **POLICY)
        if level > FIRST_LEVEL:
            self.bus.publish([encode(RaiseLevel(time_ms=0, level=level))])
            wait_until(lambda: read_image(self.bus.image()).cluster.level == level, "the level to be raised")
        self.cluster_id = random_cluster_id()
        self.voters = tuple(Voter(100 + number, LOOPBACK, port) for number, port in enumerate(free_ports(gateways)))
        self.settings = GATEWAY_SETTINGS | settings
        # Brokers' copies of the log, from which gateways that start from now on may rebuild a lost one.
        self.copies: tuple[Path, ...] = ()
        self.gateways: dict[int, GatewayThread] = {}
        for voter in self.voters:
            self.start(voter.voter)

    def start(self, gateway: int) -> None:
        """Start a gateway. Wait until the engine has decided its start, and it knows which gateway leads."""
        identity = Identity(
            gateway=gateway,
            voters=self.voters,
            cluster_id=self.cluster_id,
            directory=self.directory / f"gateway-{gateway}",
            copies=self.copies,
        )
        seq = self.bus.last_seq()
        self.gateways[gateway] = started = GatewayThread(identity, self.bus_path, **self.settings)

        def has_started() -> bool:
            assert not started.has_ended, started.error
            return any(b'"gateway_started"' in entry.raw for entry in self.bus.read(seq, self.bus.decided_seq()))

        wait_until(has_started, f"the start of gateway {gateway} to be decided")
        client = self.client(gateway)
        wait_until(lambda: self._knows_leader(client), f"gateway {gateway} to know which gateway leads")
        client.close()

    def start_elsewhere(self, gateway: int, directory: Path) -> int:
        """Start a gateway that already runs a second time, on another port and ``directory``; return the port."""
        (port,) = free_ports(1)
        identity = Identity(
            gateway=gateway,
            voters=self.voters,
            cluster_id=self.cluster_id,
            directory=directory,
            listener=(LOOPBACK, port),
        )
        self.gateways[gateway] = GatewayThread(identity, self.bus_path, **self.settings)
        return port

    def _knows_leader(self, client: ControllerClient) -> bool:
        leader, quorum = client.fetch(0, 0)["CurrentLeader"], self.state
        return bool((leader["LeaderId"], leader["LeaderEpoch"]) == (quorum.voter, quorum.quorum_epoch))

    def decide_by(self, **settings: Any) -> None:
        """Replace the engine by one that also decides by ``settings``."""
        self.engine.stop()
        self.engine = RulesEngine()
        self.engine.start(self.bus_path, **(POLICY | settings))

    def stop(self) -> None:
        """Stop everything; raise the error of a part that had failed."""
        try:
            for gateway in self.gateways.values():
                gateway.stop()
        finally:
            self.engine.stop()
            self.bus.close()

    def client(self, gateway: int = 100) -> ControllerClient:
        return ControllerClient(next(voter.port for voter in self.voters if voter.voter == gateway))

    @property
    def state(self) -> QuorumState:
        """The committed state of the metadata quorum: which gateway leads, in which epoch."""
        return read_image(self.bus.image()).cluster.quorum

    def view(self) -> dict[str, Any]:
        return view_of_image(self.bus.image())

    def partition(self, topic: str, number: int = 0) -> dict[str, Any]:
        held: list[dict[str, Any]] = self.view()["partitions"]
        return next(one for one in held if (one["topic"], one["partition"]) == (topic, number))

    def broker(self, number: int) -> dict[str, Any]:
        held: list[dict[str, Any]] = self.view()["brokers"]
        return next(one for one in held if one["broker"] == number)

    # What a broker does at its start

    def registration(self, broker: int, incarnation: str = "A", **given: Any) -> dict[str, Any]:
        """Return a registration as a broker of Kafka 4 sends it; ``incarnation`` is one letter of its id."""
        listener = {"Name": "PLAINTEXT", "Host": LOOPBACK, "Port": 9_000 + broker, "SecurityProtocol": 0}
        fields = {
            "BrokerId": broker,
            "ClusterId": self.cluster_id,
            "IncarnationId": f"{broker:02d}{incarnation}AAAAAAAAAAAAAAAAAAA",
            "Listeners": [listener],
            "Features": SUPPORTED,
            "Rack": None,
            "LogDirs": [f"{broker:02d}LAAAAAAAAAAAAAAAAAAA"],
        }
        return fields | given

    def join(self, client: ControllerClient, *brokers: int) -> dict[int, int]:
        """Register brokers and unfence them; return their epochs."""
        epochs = {}
        for broker in brokers:
            answer = client.ask("BrokerRegistration", **self.registration(broker))
            assert answer["ErrorCode"] == 0, answer
            epochs[broker] = answer["BrokerEpoch"]
            beat = client.ask("BrokerHeartbeat", **heartbeat(broker, answer["BrokerEpoch"]))
            assert (beat["ErrorCode"], beat["IsCaughtUp"], beat["IsFenced"]) == (0, True, False), beat
        return epochs


def heartbeat(broker: int, broker_epoch: int, **given: Any) -> dict[str, Any]:
    """Return a heartbeat of a broker that has read the whole metadata log and wants to serve."""
    fields = {
        "BrokerId": broker,
        "BrokerEpoch": broker_epoch,
        "CurrentMetadataOffset": 1 << 40,
        "WantFence": False,
        "WantShutDown": False,
    }
    return fields | given
