"""The recipe of the container image, what starts in it, and how its health is asked."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from brokers.gateways.kraft.settings import Settings as GatewaySettings
from brokers.gateways.shared.health import liveness, readiness
from brokers.gateways.shared.metrics import SERIES, GatewayMeasures
from brokers.process.metrics import OwnMetrics, served
from conf.environment import given_in
from conf.loader import KEYS
from conf.security.authority import Authority
from conf.security.exposure import Protection, protection_of
from conf.settings import Settings
from sinks.metrics import Metrics
from sinks.web.routes import app_of
from tests.deploy.commands import understood
from tests.deploy.documents import DEPLOY
from tests.support.rooms import ROOMS
from tests.support.waiting import TIMEOUT_S
from web.server import WebServer

ROOT = DEPLOY.parent
CONTAINER = DEPLOY / "container"
# Each instruction of the recipe on one line.
LINES = re.sub(r"\\\n\s*", "", (CONTAINER / "Containerfile").read_text()).splitlines()


def instructions(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def locked(path: Path) -> dict[str, str]:
    """Return the packages of a lock, each with its version and hashes. What they are for may be said differently."""
    lines = path.read_text().replace("\\\n", "").splitlines()
    return {line.split()[0]: " ".join(re.findall(r"--hash=\S+", line)) for line in lines if re.match(r"\w", line)}


def test_the_image_has_what_an_engine_needs_and_exactly_the_locked_versions() -> None:
    copied = {words[0] for line in instructions("COPY") if len(words := line.split()) == 2}
    assert set(ROOMS) <= copied
    sources = [word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    installs = [part for line in instructions("RUN") for part in line.split("&&") if "pip install" in part]
    assert installs
    assert [part for part in installs if "--require-hashes" not in part and "--no-deps" not in part] == []
    every, engine = locked(DEPLOY / "requirements.lock"), locked(CONTAINER / "engine.lock")
    assert {name: every.get(name) for name in engine} == engine
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["kafka"], *extras["engine"], *extras["zookeeper"]]
    names = {re.split(r"[\[<>=]", one)[0] for one in wanted} - {"isrflow"}
    assert names - {name.partition("==")[0] for name in engine} == set(), "run make lock"
    assert not any(name.startswith("pytest==") for name in engine)
    assert all("openjdk-17-jre-headless" in line for line in instructions("RUN") if "apt-get install" in line)


def test_the_image_runs_as_a_user_and_takes_sigterm() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    (entry,), (command,) = map(json.loads, instructions("ENTRYPOINT")), map(json.loads, instructions("CMD"))
    assert entry[0] == "tini"
    ports = {Settings().metrics_port, GatewaySettings().metrics_port, 9093}
    assert {int(port) for line in instructions("EXPOSE") for port in line.split()} == ports
    assert understood(command)["standby"] is False
    (health,) = instructions("HEALTHCHECK")
    assert entry[-1] == "isrflow"
    probe = Path(json.loads(health.partition(" CMD ")[2])[1])
    assert probe.is_relative_to("/opt/isrflow/container")
    assert f"deploy/container/{probe.name}" in " ".join(instructions("COPY"))
    environment = dict(pair.split("=", 1) for line in instructions("ENV") for pair in shlex.split(line))
    given_in(environment, KEYS)


def test_the_image_prepares_its_java() -> None:
    (line,) = [line for line in instructions("RUN") if "doctor" in line]
    assert understood(shlex.split(line)[1:])["preparing"] is True


def test_an_image_is_tagged_by_its_version_and_commit(tmp_path: Path) -> None:
    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        return done.stdout.strip()

    script = tmp_path / "deploy" / "container" / "tag.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(CONTAINER / "tag.sh", script)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "isrflow"\nversion = "7.8.9"\n')
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    run("git", "init", "--quiet")
    run("git", "add", "--all")
    run("git", *author, "commit", "--quiet", "--message", "first")
    commit = run("git", "rev-parse", "HEAD")
    assert run("bash", script) == f"7.8.9-{commit[:12]}"
    (tmp_path / "new").touch()
    assert run("bash", script) == f"7.8.9-{commit[:12]}-changed"


def test_no_file_names_an_image_by_a_fixed_version() -> None:
    texts = (*DEPLOY.rglob("*.yaml"), CONTAINER / "Containerfile", *(ROOT / "docs").glob("*.md"))
    named = [path.name for path in texts if re.search(r"isrflow:\d|newTag: \d", path.read_text())]
    assert named == []


def probe(path: str, file: Path, *arguments: str | Path) -> tuple[int, str]:
    """Run the probe, with the settings file in the environment unless it is among the ``arguments``."""
    done = subprocess.run(
        [sys.executable, CONTAINER / "probe.py", path, *arguments],
        # As podman passes them on.
        env=dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:1")
        | {"PYTHONPATH": str(ROOT)}
        | ({} if arguments else {"ISRFLOW_CONF": str(file)}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    return done.returncode, done.stderr.strip()


def test_the_probe_asks_a_gateway_too(tmp_path: Path) -> None:
    measures = GatewayMeasures(gateway=100, is_serving=True, leader=101)
    health = {"/healthz": lambda: liveness(measures, 0), "/readyz": lambda: readiness(replace(measures, leader=-1))}
    file = tmp_path / "gateway.toml"
    with served(OwnMetrics(SERIES, lambda: measures), "127.0.0.1", 0, Protection(), health) as port:
        file.write_text(f'controller.quorum.voters = "100@a:9093"\nmetrics.port = {port}\n')
        assert probe("/healthz", file) == probe("/healthz", file, file) == (0, "")
        assert probe("/readyz", file, file) == (1, "/readyz: HTTP Error 503: Service Unavailable")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_probe_asks_the_engine_of_the_settings(tmp_path: Path, host: str) -> None:
    keystore = str(Authority(tmp_path / "ca").issue("engine"))
    token = tmp_path / "metrics.token"
    token.write_text("not-a-secret-but-long-enough\n")
    given = Settings(metrics_host=host, metrics_ssl_keystore_location=keystore, metrics_token_file=str(token))
    protection = protection_of(given, {})
    server = WebServer(app_of(Metrics(kafka_names=False)), protection)
    port = server.serve("::1" if host == "::" else "127.0.0.1", 0)
    settings = tmp_path / "engine.toml"
    lines = (f'metrics.host = "{host}"', f"metrics.port = {port}", f'metrics.token.file = "{token}"')
    settings.write_text("\n".join([*lines, f'metrics.ssl.keystore.location = "{keystore}"']))

    try:
        assert probe("/healthz", settings) == (0, "")
        # It has not begun to decide.
        assert probe("/readyz", settings) == (1, "/readyz: HTTP Error 503: Service Unavailable")
    finally:
        server.close()
    assert probe("/healthz", settings)[0] == 1
