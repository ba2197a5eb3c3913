"""The page of a shadow's bus, served by the command, as a browser asks for it."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bus.embedded import EmbeddedBus
from cli.commands import command
from tests.brokers.shadow.worlds import LOGS
from tests.cli.conftest import Isrflow
from tests.sinks.web.test_page import Stream
from tests.support.waiting import TIMEOUT_S


@pytest.fixture(scope="module")
def read_bus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shadow") / "incident.db"
    done = CliRunner().invoke(command, ["shadow", "read", str(LOGS / "kafka-4.0.2.tar.xz"), "--bus", str(path)])
    assert done.exit_code == 0, done.output
    return path


@pytest.fixture(scope="module")
def port(read_bus: Path) -> Iterator[int]:
    before = read_bus.read_bytes()
    serving = [sys.executable, "-m", "cli", "shadow", "serve", str(read_bus)]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stderr
            said = process.stdout.readline().strip()
            assert said.startswith("http://127.0.0.1:"), said
            yield int(said.rpartition(":")[2].strip("/"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert read_bus.read_bytes() == before


def asked(port: int, path: str) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_a_browser_gets_the_observed_cluster_at_once(port: int) -> None:
    stream = Stream(port)
    assert stream.next("beat")["age_ms"] == 0, "a recorded state is never old"
    assert stream.next("status")["role"] == "observing"
    cluster = stream.next("cluster")
    assert (cluster["observed"]["offset"], cluster["partitions"], len(cluster["brokers"])) == (558, 7, 2)
    totals = stream.next("decisions")["totals"]
    assert (totals["unclean"], totals["violations"], totals["divergences"]) == (2, 1, 0)
    assert stream.next("timeline")["buckets"]["1000"]
    stream.close()


def test_the_past_is_that_of_the_observed_cluster(port: int) -> None:
    explained = asked(port, "/page/partition?topic=single&partition=0")
    elected = next(one for one in explained["decisions"] if one.get("unclean"))
    said = [one for step in explained["explanation"]["steps"] for one in step["sentences"]]
    assert "Broker 3 was fenced at offset 404: its session expired." in said
    states = [asked(port, f"/page/past?time_ms={elected['time_ms'] + more}")["cluster"] for more in (-1, 0)]
    offline = [{row["topic"] for row in state["rows"] if "offline" in row["problems"]} for state in states]
    assert ("single" in offline[0], "single" in offline[1]) == (True, False)
    assert states[1]["observed"]["offset"] == 460, "the last record of the election"


def test_how_sure_a_cause_is_is_told(port: int) -> None:
    steps = asked(port, "/page/partition?topic=frail&partition=0")["explanation"]["steps"]
    said = [one for step in steps for one in step["sentences"]]
    assert any("probably an admin asked for it, or the controller balanced leaders" in one for one in said)


def test_a_bus_on_which_a_cluster_is_led_is_refused(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    done = isrflow("shadow", "serve", str(cluster.path))
    told = f"Error: bus {cluster.path} is not the shadow of a cluster: make one with 'isrflow shadow read'\n"
    assert (done.exit_code, done.stderr) == (2, told)


def test_a_bus_without_a_state_is_refused(isrflow: Isrflow, tmp_path: Path) -> None:
    EmbeddedBus(tmp_path / "new.db").close()
    done = isrflow("shadow", "serve", str(tmp_path / "new.db"))
    assert (done.exit_code, "has no state yet" in done.stderr) == (3, True), done.output
    assert isrflow("shadow", "serve", str(tmp_path / "none.db")).exit_code == 3
    assert not (tmp_path / "none.db").exists()


def test_a_taken_port_is_named(isrflow: Isrflow, read_bus: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        done = isrflow("shadow", "serve", str(read_bus), "--port", str(taken))
    told = f"Error: --port {taken}: Address already in use; name another one, or 0 for any free port\n"
    assert (done.exit_code, done.stderr) == (3, told)
