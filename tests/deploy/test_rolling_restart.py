"""Two engines, two gateways and three real brokers run as the units say, and each is restarted in turn under load.

systemd itself is not here. Its part is played: the command lines, environment, limits and umask of the units, the
profiles that docs/running.md installs, and the socket at which it waits for READY=1. Places and ports are this test's.
"""

import resource
import shlex
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from brokers.launch.ports import free_ports
from brokers.launch.service import Service
from brokers.voters import text_of
from bus.image import read_image
from tests.deploy.documents import DEPLOY
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.engine import ISRFLOW
from tests.support.real_cluster import RealCluster
from tests.support.units import by_name
from tests.support.waiting import wait_until

# On a busy machine each of its four starts of Spark takes minutes.
pytestmark = [pytest.mark.long, pytest.mark.kraft, pytest.mark.spark, pytest.mark.timeout(2_400)]
PROFILES = DEPLOY.parent / "conf" / "profiles"
INSTALLED = {"engine.toml": "production.toml", "gateway.toml": "gateway.toml"}
TOPIC = "t"
START_TIMEOUT_S = 400.0


def limit_of(unit: dict[str, list[str]]) -> int:
    """Return a unit's limit of open files, or this machine's if only systemd could raise that."""
    return min(int(unit["LimitNOFILE"][0]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])


class Unit(Service):
    """A process that a unit describes, with this test's ``places`` as environment variables."""

    awaited = "READY=1"

    def __init__(self, unit: str, name: str, folder: Path, places: dict[str, str]) -> None:
        super().__init__(name, folder, "unit.log")
        self.unit = by_name(unit)
        self._places = places
        self._heard: socket.socket | None = None

    def command(self) -> list[str]:
        environment = dict(pair.split("=", 1) for pair in self.unit["Environment"])
        name = Path(environment["ISRFLOW_CONF"]).name
        environment["ISRFLOW_CONF"] = str(shutil.copy(PROFILES / INSTALLED[name], self.folder / name))
        # The prepared classes are where this environment has them.
        environment.pop("ISRFLOW_CACHE", None)
        environment |= self._places | {"NOTIFY_SOCKET": self._listen()}
        program, *words = shlex.split(self.unit["ExecStart"][0])
        assert Path(program).name == ISRFLOW.name
        files = limit_of(self.unit)
        given = (f"{name}={value}" for name, value in environment.items())
        inner = ["env", *given, str(ISRFLOW), *words]
        return ["sh", "-c", f'umask {self.unit["UMask"][0]}; exec prlimit --nofile={files}:{files} "$@"', "sh", *inner]

    def _listen(self) -> str:
        if self._heard is not None:
            self._heard.close()
        # The path of a socket is short.
        address = f"\0isrflow-{self.folder.parent.name}-{self.name}"
        self._heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._heard.bind(address)
        self._heard.setblocking(False)
        return address.replace("\0", "@")

    def is_ready(self) -> bool:
        assert self._heard is not None
        try:
            return self._heard.recv(100) == b"READY=1"
        except BlockingIOError:
            return False

    def restart(self) -> None:
        """Do what systemctl restart does."""
        assert self.stop(float(self.unit["TimeoutStopSec"][0])), f"{self.name} was killed"
        self.start()
        self.wait_until_started(START_TIMEOUT_S)


class Site:
    """The engines and gateways of units, and brokers that the gateways lead."""

    def __init__(self, directory: Path) -> None:
        self.cluster = RealCluster(directory, gateways=2)
        ports = iter(free_ports(4))
        bus = {"ISRFLOW_BUS": f"sqlite:{self.cluster.bus_path}"}
        # Two engines on one machine share what is beside the bus file.
        engine = bus | {"ISRFLOW_CHECKPOINT_DIR": str(directory / "checkpoint")}
        self.engines = [
            Unit("isrflow-standby", name, directory / name, engine | {"ISRFLOW_METRICS_PORT": str(next(ports))})
            for name in ("engine-a", "engine-b")
        ]
        self.gateways: list[Unit] = []
        for voter in self.cluster.voters:
            folder = directory / f"unit-{voter.voter}"
            places = {
                "ISRFLOW_NODE_ID": str(voter.voter),
                "ISRFLOW_CONTROLLER_QUORUM_VOTERS": text_of(tuple(self.cluster.voters)),
                "ISRFLOW_CLUSTER_ID": self.cluster.cluster_id,
                "ISRFLOW_LISTENERS": f"CONTROLLER://{voter.host}:{voter.port}",
                "ISRFLOW_METADATA_LOG_DIR": str(folder / "log"),
                "ISRFLOW_AUTHORIZER_LOG_DIR": str(folder),
                # Brokers of this cluster have no certificates.
                "ISRFLOW_SECURITY_PROTOCOL": "PLAINTEXT",
                "ISRFLOW_METRICS_PORT": str(next(ports)),
            }
            self.gateways.append(Unit("isrflow-gateway", f"gateway-{voter.voter}", folder, bus | places))
        self.cluster.gateways.clear()

    def start(self) -> None:
        """Start everything, and wait until each unit is up."""
        for unit in (*self.engines, *self.gateways):
            unit.start()
        for unit in (*self.engines, *self.gateways):
            unit.wait_until_started(START_TIMEOUT_S)
        self.cluster.start()

    def stop(self) -> None:
        """Kill everything."""
        with ExitStack() as stack:
            for unit in (*self.engines, *self.gateways):
                stack.callback(unit.kill)
            stack.callback(self.cluster.stop)

    @property
    def leader(self) -> int:
        return read_image(self.cluster.bus.image()).cluster.quorum.voter


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    try:
        site.start()
        yield site
    finally:
        site.stop()


def test_each_process_is_restarted_in_turn_and_nothing_is_lost(site: Site) -> None:
    cluster = site.cluster
    names = (TOPIC, f"{TOPIC}-whole")
    # As the production profile has it, which brokers learn from the gateways.
    cluster.create(*(NewTopic(name, PARTITIONS, 3) for name in names))
    for name in names:
        cluster.agree(name)
    for unit in (*site.engines, *site.gateways):
        assert psutil.Process(unit.pid).rlimit(psutil.RLIMIT_NOFILE) == (limit_of(unit.unit),) * 2
    registered = {held["broker"]: held["broker_epoch"] for held in cluster.view()["brokers"]}
    traffic = Traffic(cluster.bootstrap, TOPIC)
    traffic.goes_on()
    for unit in (*site.gateways, *site.engines):
        unit.restart()
        traffic.goes_on()
    # No restart of a gateway or an engine fenced a broker or made it register again.
    assert {held["broker"]: held["broker_epoch"] for held in cluster.view()["brokers"]} == registered
    assert set(cluster.states().values()) == {"active"}
    wait_until(lambda: site.leader in {voter.voter for voter in cluster.voters}, "a gateway to lead")
    for number, node in sorted(cluster.kafka.nodes.items()):
        assert node.stop(), f"broker {number} was killed"
        cluster.restart(number)
        cluster.wait_for_isr(TOPIC, 3)
        traffic.goes_on()
    traffic.end()
    cluster.agree(TOPIC)
