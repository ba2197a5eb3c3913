"""An engine, its gateways and the real brokers that they lead, described in one folder."""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from brokers.gateways.zk.messages import protocol_settings
from brokers.launch.gateway import GatewayProcess, GatewayService, ZookeeperGatewayProcess
from brokers.launch.kafka.cluster import FILE as CLUSTER_FILE
from brokers.launch.kafka.cluster import KafkaCluster, broker_specs, refuse_existing, remove
from brokers.launch.kafka.node import KafkaError
from brokers.launch.kafka.properties import LOOPBACK
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.ports import free_ports
from brokers.launch.service import Service, kill_all
from brokers.voters import Voter
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from bus.interface import BusError
from cli.cluster.access import SECURE_SETTINGS, access_of_brokers, access_of_gateways
from cli.cluster.bus_place import BusPlace
from cli.cluster.certificates import FOLDER as SECURITY
from cli.cluster.certificates import Certificates
from cli.cluster.engine import EngineProcess, decides
from cli.cluster.file_settings import BROKER_FILE_SETTINGS, ZOOKEEPER_FILE_SETTINGS, broker_settings
from cli.cluster.metadata_version import choose_metadata_version, first_requests
from cli.cluster.remembered import FILE, Remembered
from conf.whole_file import replace
from state.ids import NO_LEADER
from state.stored.codec import CodecError

ENGINE, ZOOKEEPER = "engine", "zookeeper"
FIRST_GATEWAY = 100
# A gateway that loses its disk rebuilds its log from the other.
GATEWAYS, GATEWAYS_MAX = 2, 9
# ZooKeeper tells when a broker is gone. The engine's own session ends only if no gateway passes that on.
ZOOKEEPER_ENGINE_SETTINGS = ("broker.session.timeout.ms=60000",)
# A broker gives up if it is not registered in time. A cold engine on a busy machine takes longer than Kafka's minute.
SLOW_START = {"initial.broker.registration.timeout.ms": "180000"}

Say = Callable[[str], None]


class BusTakenError(Exception):
    """The bus has brokers of another cluster. The message names them."""


class LedCluster:
    """An engine, gateways and the brokers that they lead, started and stopped together or one by one."""

    def __init__(self, kafka: KafkaCluster, remembered: Remembered) -> None:
        self.kafka = kafka
        self.folder = kafka.folder
        self.bus = BusPlace(remembered.bus)
        self.made_bus = remembered.made_bus
        self.handed_back = remembered.handed_back
        self.is_secure = remembered.secure
        self._remembered = remembered
        conf = Path(remembered.conf) if remembered.conf else None
        given = (remembered.engine_settings, conf, remembered.directory)
        self.engine = EngineProcess(self.folder / ENGINE, self.bus.url, *given)
        self._certificates = Certificates(self.folder) if remembered.secure else None
        port = remembered.zookeeper_port
        self.zookeeper = None if port is None else ZookeeperProcess(port, self.folder / ZOOKEEPER)
        self.gateways = {voter.voter: self._gateway(voter, remembered) for voter in remembered.voters}

    def _gateway(self, voter: Voter, remembered: Remembered) -> GatewayService:
        voters, folder = remembered.voters, self.folder / f"gateway-{voter.voter}"
        if self.zookeeper is not None:
            address, adopts = self.zookeeper.address, remembered.adopts
            given = protocol_settings([node.spec.overrides for node in self.kafka.nodes.values()])
            return ZookeeperGatewayProcess(
                voter, voters, self.kafka.cluster_id, address, remembered.bus, folder, given, adopts=adopts
            )
        settings = self._certificates.gateway_settings(voter.voter) if self._certificates else {}
        copies = [node.data[0] / METADATA_DIRECTORY for node in self.kafka.nodes.values()]
        return GatewayProcess(voter, voters, self.kafka.cluster_id, remembered.bus, folder, settings, copies)

    @classmethod
    def create(
        cls,
        folder: Path,
        bus: Path | str,
        *,
        brokers: int,
        gateways: int = GATEWAYS,
        cluster_id: str | None = None,
        conf: Path | None = None,
        engine_settings: Sequence[str] = (),
        overrides: dict[str, str] | None = None,
        secure: bool = False,
        zookeeper: bool = False,
        metadata_version: int | None = None,
        **rest: object,
    ) -> "LedCluster":
        """Describe a cluster in a folder that has none yet. ``rest`` goes into each broker's ``NodeSpec``.

        Raises ``KafkaError``, ``ValueError``, or ``BusTakenError`` if the bus already has brokers.
        """
        place = BusPlace.of(bus)
        if (is_there := place.exists()) and (existing := sorted(place.cluster().brokers)):
            raise BusTakenError(f"the bus {place} has brokers of another cluster: {', '.join(map(str, existing))}")
        # One for ZooKeeper, and one for each gateway.
        zookeeper_port, *ports = free_ports(1 + gateways)
        voters = tuple(Voter(FIRST_GATEWAY + number, LOOPBACK, port) for number, port in enumerate(ports))
        rest["overrides"] = SLOW_START | (overrides or {})
        remembered = Remembered(
            bus=place.url,
            made_bus=not is_there,
            voters=voters,
            conf=str(conf.resolve()) if conf else None,
            directory=str(Path.cwd()) if conf else None,
            engine_settings=(*_made_settings(folder, conf, secure, zookeeper), *engine_settings),
            secure=secure,
            zookeeper_port=zookeeper_port if zookeeper else None,
            metadata_version=metadata_version,
        )
        address = f"{LOOPBACK}:{zookeeper_port}"
        specs = broker_specs(brokers, () if zookeeper else voters, zookeeper=address if zookeeper else None, **rest)
        if not (folder / CLUSTER_FILE).exists():
            own = (ENGINE, SECURITY, ZOOKEEPER, *(f"gateway-{voter.voter}" for voter in voters))
            refuse_existing(folder / name for name in own)
        if secure:
            certificates = Certificates(folder.resolve())
            specs = tuple(map(certificates.given_to, specs, free_ports(len(specs))))
        # Written together: brokers without this file would count as led from elsewhere.
        beside = {FILE: msgspec.json.format(msgspec.json.encode(remembered))}
        return cls(KafkaCluster.create(folder, specs, cluster_id, beside), remembered)

    @classmethod
    def open(cls, kafka: KafkaCluster) -> "LedCluster | None":
        """Open the description of what leads a cluster. Return None if it is led from elsewhere.

        Raises ``KafkaError``.
        """
        try:
            return cls(kafka, msgspec.json.decode((kafka.folder / FILE).read_bytes(), type=Remembered))
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise KafkaError(f"{kafka.folder / FILE} cannot be read: {error}") from error

    def changed(self, **fields: object) -> "LedCluster":
        """Store other values for some fields of the description, and return the cluster that has them."""
        remembered = msgspec.structs.replace(self._remembered, **fields)
        replace(self.folder / FILE, msgspec.json.format(msgspec.json.encode(remembered)))
        return LedCluster(self.kafka, remembered)

    @property
    def services(self) -> list[Service]:
        """All processes in start order."""
        zookeeper = [] if self.zookeeper is None else [self.zookeeper]
        return [self.engine, *zookeeper, *self.gateways.values(), *self.kafka.nodes.values()]

    def up(self, say: Say) -> None:
        """Start what does not run, and wait until everything runs. Start an engine only if none decides.

        If one process does not start, kill those that were started with it. Raises ``ServiceError``,
        ``BusError``, ``JarsError`` or ``JavaError``.
        """
        with ExitStack() as undo:
            if self._certificates:
                nodes = (("gateway", self.gateways), ("broker", self.kafka.nodes))
                self._certificates.issue(f"{kind}-{number}" for kind, of_kind in nodes for number in of_kind)
            if self.handed_back:
                self._start_zookeeper(undo)
                self._start_brokers(say)
                undo.pop_all()
                return
            is_ours = self.start_engine(say, undo)
            # Formatting takes as long as the start of the engine, so it runs at the same time.
            self.kafka.format()
            if requests := self._first_requests():
                if is_ours:
                    self.engine.wait_until_started()
                choose_metadata_version(self.bus, requests)
            stopped = [service.name for service in self.services[1:] if service.state == "stopped"]
            if stopped:
                say(f"starting {', '.join(stopped)}")
            self._start_zookeeper(undo)
            access = self.access
            for gateway in self.gateways.values():
                if gateway.state == "stopped":
                    # A gateway to brokers in ZooKeeper mode knows no principals.
                    if self.zookeeper is None:
                        # Access control without TLS is safe here, because gateways listen on loopback.
                        plaintext = {} if self.is_secure else {"allow.authorizer.on.plaintext": "true"}
                        gateway.settings |= access | plaintext
                    gateway.start()
                    undo.callback(gateway.kill)
            for gateway in self.gateways.values():
                gateway.wait_until_started()
            # If our engine has ended by now, this raises an error with the reason.
            if is_ours:
                self.engine.wait_until_started()
            self._start_brokers(say)
            undo.pop_all()

    def _first_requests(self) -> list[dict[str, object]]:
        """Return what is asked of the engine before the first start of a gateway of this cluster."""
        if self.zookeeper is not None or any(gateway.folder.exists() for gateway in self.gateways.values()):
            return []
        return first_requests(self._remembered.metadata_version, is_new_bus=self.made_bus)

    @property
    def access(self) -> dict[str, str]:
        """The gateways' settings of access control."""
        return access_of_gateways(self.engine.settings())

    def _start_zookeeper(self, undo: ExitStack) -> None:
        if self.zookeeper is not None and self.zookeeper.state == "stopped":
            self.zookeeper.start()
            undo.callback(self.zookeeper.kill)
            self.zookeeper.wait_until_started()

    def _start_brokers(self, say: Say) -> None:
        if self.zookeeper is not None:
            self._end_former_sessions(self.zookeeper, say)
        names = BROKER_FILE_SETTINGS if self.zookeeper is None else ZOOKEEPER_FILE_SETTINGS
        settings = broker_settings(self.bus.cluster(), names)
        settings |= access_of_brokers(self.access, self.kafka.nodes.values()) if self.zookeeper is None else {}
        for node in self.kafka.nodes.values():
            node.engine_settings = settings
        self.kafka.up()

    def _end_former_sessions(self, zookeeper: ZookeeperProcess, say: Say) -> None:
        stopped = {number for number, node in self.kafka.nodes.items() if node.state == "stopped"}
        if waited_for := sorted(stopped & (zookeeper.brokers_with_session() or set())):
            say(f"waiting for ZooKeeper to end the sessions of brokers that were killed: {waited_for}")
            zookeeper.wait_until_sessions_end(waited_for)

    def start_engine(self, say: Say, undo: ExitStack) -> bool:
        """Start an engine if none decides, without waiting for it. Return whether the engine that decides is ours.

        Raises ``KafkaError`` if the bus is gone.
        """
        if self.engine.state != "stopped":
            return True
        if not self.bus.exists() and any(gateway.folder.exists() for gateway in self.gateways.values()):
            raise KafkaError(f"the bus {self.bus} is gone, and the brokers cannot follow another bus")
        with contextlib.closing(self.bus.open()) as bus:
            decided_elsewhere = decides(bus)
        if decided_elsewhere:
            say(f"an engine decides on {self.bus}")
            return False
        self.engine.start()
        undo.callback(self.engine.kill)
        say(f"no engine decides on {self.bus}: started one, process {self.engine.pid}, log {self.engine.log_file}")
        return True

    def down(self) -> list[str]:
        """Stop brokers, gateways, and the engine if it was started here. Return the names of those that were killed."""
        killed = [self.kafka.nodes[number].name for number in self.kafka.down()]
        killed += [gateway.name for gateway in self._leader_last() if not gateway.stop()]
        if self.zookeeper is not None and not self.zookeeper.stop():
            killed.append(self.zookeeper.name)
        if not self.engine.stop():
            killed.append(self.engine.name)
        return killed

    def _leader_last(self) -> list[GatewayService]:
        """List the gateways with the leader last, so that no gateway hands over to one that stops next."""
        leader = NO_LEADER
        # A bus that cannot be reached, or was written by a later isrflow, is no reason to leave gateways running.
        with suppress(BusError, CodecError):
            leader = self.bus.cluster().quorum.voter
        return sorted(self.gateways.values(), key=lambda gateway: gateway.voter.voter == leader)

    def kill(self) -> None:
        """Kill everything that was started here."""
        kill_all(reversed(self.services))

    def delete(self) -> None:
        """Remove all data and logs, the bus if it was created with this cluster, and the folder if it is empty then.

        Raises ``KafkaError`` while any process runs, or while another engine decides on that bus.
        """
        running = [service.name for service in self.services if service.state != "stopped"]
        if running:
            raise KafkaError(f"still running: {', '.join(running)}")
        if self.made_bus and self.bus.path is not None and self.bus.exists():
            with contextlib.closing(self.bus.open()) as bus:
                if decides(bus):
                    raise KafkaError(f"another engine decides on {self.bus}: stop it first")
            self.bus.remove()
        own = [self.engine.folder, self.folder / SECURITY, self.folder / ZOOKEEPER]
        remove([*own, *(gateway.folder for gateway in self.gateways.values())])
        self.kafka.delete(with_them=[self.folder / FILE])


def _made_settings(folder: Path, conf: Path | None, secure: bool, zookeeper: bool) -> tuple[str, ...]:
    """Return the engine's settings that follow from the kind of cluster."""
    if secure:
        return (*(SECURE_SETTINGS if conf is None else ()), *Certificates(folder.resolve()).engine_settings())
    return ZOOKEEPER_ENGINE_SETTINGS if zookeeper and conf is None else ()
