"""The folder of a cluster that the last release made is opened by this tree as the same cluster."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from conf.kafka_versions import OF_RELEASE
from tests.support.wheel import ROOT
from tests.upgrade.releases import last_sources

TIMEOUT_S, NOT_RUNNING = 120, 3
# `isrflow cluster`, whose processes are neither started nor given jars.
PROGRAM = """
import os, sys
from cli.cluster import up
from cli import main
assert up.__file__.startswith(os.environ["PYTHONPATH"])
up.fetch_missing = lambda jars: None
up.LedCluster.up = up.KafkaCluster.up = lambda *_: None
sys.argv[1:1] = ["cluster"]
main()
"""


@pytest.fixture(scope="module")
def last(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the last release."""
    directory = tmp_path_factory.mktemp("last")
    with tarfile.open(last_sources(directory / "last.tar")) as archive:
        archive.extractall(directory, filter="data")
    return directory


def cluster(sources: Path, directory: Path, *arguments: str) -> tuple[int, str]:
    """Run a command of a tree for the cluster in ``directory``; return its exit code and what it printed."""
    command = [sys.executable, "-P", "-c", PROGRAM, *arguments, "--dir", "cluster"]
    environment = os.environ | {"PYTHONPATH": str(sources)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=directory, env=environment)
    return done.returncode, done.stdout + done.stderr


def known_versions(sources: Path) -> dict[str, str]:
    """Read which version of each release of Kafka a tree runs."""
    found = re.findall(r'KafkaVersion\("([\d.]+)"', (sources / "conf" / "kafka_versions.py").read_text())
    return {number.rpartition(".")[0]: number for number in found}


@pytest.mark.parametrize(
    ("release", "options"),
    [
        ("4.1", ()),
        ("4.1", ("--plain", "--brokers", "1", "--heap", "256m", "--set", "num.io.threads=2")),
        ("4.2", ("--secure", "--gateways", "1", "--metadata-version", "4.0", "--bus", "sqlite:other.db")),
        ("3.9", ("--zookeeper",)),
    ],
    ids=["default", "plain", "secure", "zookeeper"],
)
def test_a_cluster_of_the_last_release_is_opened(
    last: Path, tmp_path: Path, release: str, options: tuple[str, ...]
) -> None:
    was = known_versions(last)[release]
    code, made = cluster(last, tmp_path, "up", "--kafka", was, *options)
    assert (code, f" of Kafka {was}, " in made) == (0, True), made
    told = cluster(last, tmp_path, "status")
    assert told[0] == NOT_RUNNING
    # The same cluster at the same ports, with the newest fix release of Kafka.
    expected = made.replace(f" of Kafka {was}, ", f" of Kafka {OF_RELEASE[release].number}, ")
    assert cluster(ROOT, tmp_path, "up") == (0, expected)
    assert cluster(ROOT, tmp_path, "status") == told
    assert cluster(ROOT, tmp_path, "down", "--delete") == (0, "nothing was running\n")
    assert not (tmp_path / "cluster").exists()
