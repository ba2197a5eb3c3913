"""Settings from a controller's own file."""

from pathlib import Path

import pytest

from conf.loader import left_out, load
from tests.cli.conftest import Isrflow

FILE = r"""
# A controller of a production cluster.
process.roles=controller
node.id = 3000
controller.quorum.bootstrap.servers: c1:9093
listeners=CONTROLLER://:9093
broker.session.timeout.ms 18000
min.insync.replicas=2
unclean.leader.election.enable=false
leader.imbalance.check.interval.seconds=\
    600
log.dirs=/var/kafka
num.io.threads=8
ssl.keystore.password=secret-of-the-keystore
default.replication.facter=3
super.users=User\:admin
"""


def test_a_controllers_file_becomes_a_file_for_conf(isrflow: Isrflow, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(FILE)
    done = isrflow("config", "import", "server.properties")
    assert done.stdout.splitlines()[:6] == [
        "broker.session.timeout.ms = 18000",
        "leader.imbalance.check.interval.seconds = 600",
        "min.insync.replicas = 2",
        'super.users = "User:admin"',
        "unclean.leader.election.enable = false",
        "",
    ]
    (tmp_path / "isrflow.toml").write_text(done.stdout)
    policy = load(tmp_path / "isrflow.toml").policy
    assert (policy.broker_session_timeout_ms, policy.min_insync_replicas) == (18_000, 2)


def test_a_controllers_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(FILE)
    settings = load(tmp_path / "server.properties", ["min.insync.replicas=1"])
    assert (settings.policy.broker_session_timeout_ms, settings.policy.min_insync_replicas) == (18_000, 1)
    assert settings.super_users == "User:admin"
    assert "node.id" in left_out(tmp_path / "server.properties")


def test_what_is_left_out_is_named_with_the_reason_and_without_its_value(isrflow: Isrflow, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(FILE)
    told = isrflow("config", "import", "server.properties").stdout.splitlines()
    assert told[6] == "# 5 settings taken, 8 left out:"
    assert "# num.io.threads: only brokers read it: leave it in their files" in told
    assert "# node.id: a gateway's: isrflow gateway kraft --conf reads what it can of the same file" in told
    assert "# default.replication.facter: Kafka has no such setting; did you mean 'default.replication.factor'?" in told
    assert "secret" not in "".join(told)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("min.insync.replicas=many", "server.properties: min.insync.replicas: expected"),
        ("broker.session.timeout.ms=-1", "server.properties: broker.session.timeout.ms: expected"),
    ],
)
def test_a_wrong_value_names_its_setting(isrflow: Isrflow, tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "server.properties").write_text(text)
    done = isrflow("config", "import", "server.properties")
    assert (done.exit_code, wrong in done.stderr) == (2, True), done.stderr


def test_a_missing_file_is_told(isrflow: Isrflow) -> None:
    done = isrflow("config", "import", "gone.properties")
    assert (done.exit_code, "cannot read gone.properties" in done.stderr) == (2, True)
