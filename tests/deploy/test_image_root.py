"""The image's entrypoint and the probes of Kubernetes run as written, in a root that the image's steps make."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from brokers.launch.ports import free_ports
from conf.environment import variable_of
from conf.security.authority import Authority
from tests.deploy.documents import KUBERNETES, Document, pod_of, read
from tests.deploy.image_root import ImageRoot
from tests.support.waiting import TIMEOUT_S, wait_until

NEEDED = ("tini", "unshare", "nsenter", "setpriv")
pytestmark = [
    pytest.mark.long,
    pytest.mark.kraft,
    pytest.mark.spark,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(
        os.geteuid() != 0 or any(shutil.which(name) is None for name in NEEDED),
        reason=f"needs root and {', '.join(NEEDED)}",
    ),
]
START_TIMEOUT_S = 600.0
PAUSE_S = 2.0


class Pod:
    """A container of a StatefulSet, started by its image's entrypoint. ``places`` are this test's variables."""

    def __init__(self, root: ImageRoot, file: str, log: Path, places: dict[str, str]) -> None:
        found = pod_of(read(KUBERNETES / "base" / file))
        assert found is not None
        self._root, self.log = root, log
        self._container: Document = found["spec"]["containers"][0]
        given: dict[str, str] = {}
        for entry in self._container["env"]:
            text = entry.get("value", f"{file}-100")
            given[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda match: given[match[1]], text)
        self._environment = given | places
        with log.open("ab") as output:
            words = [*root.entrypoint, *self._container["args"]]
            self._process = subprocess.Popen(root.line(words, self._environment), stdout=output, stderr=output)

    def answers(self, probe: str) -> bool:
        """Run a probe of the manifest, after a pause, as Kubernetes has its periods."""
        time.sleep(PAUSE_S)
        assert self._process.poll() is None, self.log.read_text()[-2_000:]
        words = self._container[probe]["exec"]["command"]
        return subprocess.run(self._root.line(words, self._environment), capture_output=True).returncode == 0

    def _signal(self, number: signal.Signals) -> None:
        for first in psutil.Process(self._process.pid).children():
            first.send_signal(number)

    def stop(self) -> int:
        """End the container as Kubernetes does: SIGTERM to its first process."""
        self._signal(signal.SIGTERM)
        return self._process.wait(TIMEOUT_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._signal(signal.SIGKILL)
            self._process.wait(TIMEOUT_S)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[ImageRoot]:
    root = ImageRoot(tmp_path)
    yield root
    root.close()


def issued(root: ImageRoot, folder: Path, gateway: str) -> None:
    """Put the two Secrets and the settings where the manifests mount them."""
    authority, token = Authority(folder / "ca"), secrets.token_hex(16)
    for mount in ("/etc/isrflow-secrets", "/etc/isrflow-gateway-secrets"):
        root.write(f"{mount}/metrics.pem", authority.issue("isrflow", ["isrflow"]).read_text())
        root.write(f"{mount}/metrics.token", token)
        root.write(f"{mount}/ca.pem", authority.certificate_file.read_text())
        root.write(f"{mount}/bus.properties", "")
    key = authority.issue("gateway-100", [gateway]).read_text()
    root.write(f"/etc/isrflow-gateway-secrets/{gateway}.pem", key)
    for name in ("engine.toml", "gateway.toml"):
        root.write(f"/etc/isrflow/{name}", (KUBERNETES / "base" / name).read_text())


def test_entrypoint_and_probes_work_as_written(root: ImageRoot, tmp_path: Path) -> None:
    issued(root, tmp_path, "isrflow-gateway-100")
    root.seal("/var/lib/isrflow", "/var/lib/isrflow-gateway", "/var/cache/isrflow")
    of_engine, of_gateway, brokers = free_ports(3)
    # There is no Kafka for the bus here, and both containers share this machine's ports.
    bus = {variable_of("bus"): "sqlite:/var/lib/isrflow/bus.db"}
    engine_places = bus | {variable_of("metrics.port"): str(of_engine), variable_of("controller.id"): "isrflow-0"}
    gateway_places = bus | {
        "POD_NAME": "isrflow-gateway-100",
        variable_of("node.id"): "100",
        variable_of("ssl.keystore.location"): "/etc/isrflow-gateway-secrets/isrflow-gateway-100.pem",
        variable_of("metrics.port"): str(of_gateway),
        variable_of("listeners"): f"CONTROLLER://127.0.0.1:{brokers}",
    }
    engine = Pod(root, "statefulset.yaml", tmp_path / "engine.log", engine_places)
    gateway = Pod(root, "gateway-statefulset.yaml", tmp_path / "gateway.log", gateway_places)
    try:
        # The gateway is worth keeping while it waits for the bus, and not ready.
        wait_until(lambda: gateway.answers("startupProbe"), "the gateway to start", START_TIMEOUT_S)
        wait_until(lambda: engine.answers("startupProbe"), "the engine to start", START_TIMEOUT_S)
        wait_until(lambda: engine.answers("readinessProbe"), "the engine to decide", START_TIMEOUT_S)
        wait_until(lambda: gateway.answers("readinessProbe"), "the gateway to lead", START_TIMEOUT_S)
        assert engine.answers("livenessProbe") and gateway.answers("livenessProbe")
        assert gateway.stop() == 0, gateway.log.read_text()[-2_000:]
        assert engine.stop() == 0, engine.log.read_text()[-2_000:]
    finally:
        gateway.kill()
        engine.kill()
