"""Every example in the commands' help works as written."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bus.embedded import EmbeddedBus
from cli.commands import COMMANDS, command
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import started
from tests.support.waiting import TIMEOUT_S

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
LOG = ROOT / "tests/brokers/shadow/logs/kafka-4.1.0.tar.xz"
EVENTS = """\
{"kind":"broker_register","time_ms":1000,"broker":1,"incarnation":"a"}
{"kind":"broker_heartbeat","time_ms":1001,"broker":1,"broker_epoch":1,"want_fence":false,"want_shutdown":false}
{"kind":"create_topic","time_ms":1002,"topic":"orders","partitions":2,"replication_factor":1}
"""
GATEWAY = """\
node.id = 100
controller.quorum.voters = "100@127.0.0.1:9093"
cluster.id = "c"
metadata.log.dir = "gateway-100"
"""
# These start Spark or real brokers, fetch, or run until they are stopped. Set-up, test_demo.py, test_cluster.py and the
# tests of streaming/ run them.
RUN_ELSEWHERE = (
    *("isrflow run", "isrflow shadow run", "isrflow shadow serve", "isrflow gateway", "isrflow demo"),
    "isrflow cluster",
    *("--engine spark", "--fetch", "--prepare"),
)


Path_ = tuple[str, ...]


def commands(path: Path_ = ()) -> Iterator[Path_]:
    """List every command by its path, groups before what is in them."""
    found = found_at(path)
    if path:
        yield path
    if isinstance(found, click.Group):
        for name in found.list_commands(click.Context(found)):
            yield from commands((*path, name))


def found_at(path: Path_) -> click.Command:
    found: click.Command = command
    for name in path:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), name)
        assert inner is not None, path
        found = inner
    return found


def examples(path: Path_) -> list[str]:
    context = click.Context(found_at(path), info_name=" ".join(("isrflow", *path)), terminal_width=200)
    lines = found_at(path).get_help(context).split("Examples:\n")[1].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


ALL = list(commands())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_two_examples_of_itself(path: Path_) -> None:
    shown = examples(path)
    assert len(shown) >= 2
    assert [example for example in shown if f"isrflow {' '.join(path)}" not in example] == []


def runnable() -> list[str]:
    found = {example: None for path in ALL for example in examples(path)}
    return [example for example in found if not any(mark in example for mark in RUN_ELSEWHERE)]


TOPICS = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: clicks}
spec: {partitions: 2, replicas: 2}
"""
PROPERTIES = "node.id=3000\nmin.insync.replicas=2\ncontroller.listener.names=PLAINTEXT\n"


def in_shell(example: str) -> bool:
    return "|" in example or " > " in example or "--follow" in example


@pytest.mark.parametrize("example", [example for example in runnable() if in_shell(example)])
def test_examples_work_in_a_shell(example: str, tmp_path: Path, bus: EmbeddedBus) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    (tmp_path / "server.properties").write_text(PROPERTIES)
    follows = "--follow" in example
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {'timeout 2 ' if follows else ''}{example}"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == (124 if follows else 0), done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("example", [example for example in runnable() if not in_shell(example)])
def test_examples_work(example: str, tmp_path: Path, isrflow: Isrflow) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    (tmp_path / "gateway.toml").write_text(GATEWAY)
    shutil.copy(LOG, tmp_path / "node-3.tar.xz")
    (tmp_path / "server.properties").write_text(PROPERTIES)
    (tmp_path / "topics.yaml").write_text(TOPICS)
    shutil.copytree(CONF, tmp_path / "conf")
    # An example that waits for health needs brokers that all serve.
    engine = started(tmp_path, is_healthy="health" in example)
    try:
        program, *arguments = shlex.split(example)
        assert program == "isrflow"
        if "reshard" in arguments:
            engine.stop()
        done = isrflow(*arguments)
        assert (done.exit_code, done.stderr) == (0, ""), done.output
    finally:
        engine.stop()


def test_the_readme_lists_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"| `isrflow {name}" not in readme] == []


def test_help_is_fast_and_leaves_spark_alone() -> None:
    program = (
        "import sys; from cli.commands import command; command(['--help'], standalone_mode=False); "
        "slow = {'pyspark', 'pyarrow', 'pandas', 'prometheus_client', 'rich', 'kafka'} & set(sys.modules); "
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=TIMEOUT_S)
