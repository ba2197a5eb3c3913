"""Every example in the commands' help works as written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bus.embedded import EmbeddedBus
from cli import COMMANDS, command

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
EVENTS = """\
{"kind":"broker_register","time_ms":1000,"broker":1,"incarnation":"a"}
{"kind":"broker_heartbeat","time_ms":1001,"broker":1,"broker_epoch":1,"want_fence":false,"want_shutdown":false}
{"kind":"create_topic","time_ms":1002,"topic":"orders","partitions":2,"replication_factor":1}
"""
# These start Spark or real brokers, fetch, or run until they are stopped. Set-up, test_demo.py, test_cluster.py and the
# tests of streaming/ run them.
RUN_ELSEWHERE = ("isrflow run", "isrflow demo", "--engine spark", "isrflow cluster", "--fetch", "--prepare")


def help_of(name: str) -> str:
    context = click.Context(command, info_name="isrflow")
    found = command.get_command(context, name)
    assert found is not None
    return found.get_help(click.Context(found, info_name=name, parent=context, terminal_width=200))


def examples(name: str) -> list[str]:
    lines = help_of(name).split("Examples:\n")[1].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_two_examples(name: str) -> None:
    assert len(examples(name)) >= 2


def runnable() -> list[str]:
    found = [example for name in COMMANDS for example in examples(name)]
    return [example for example in found if not any(mark in example for mark in RUN_ELSEWHERE)]


@pytest.mark.parametrize("example", runnable())
def test_examples_work(example: str, tmp_path: Path, bus: EmbeddedBus) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    shutil.copytree(CONF, tmp_path / "conf")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    follows = "--follow" in example
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {'timeout 2 ' if follows else ''}{example}"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == (124 if follows else 0), done.stderr
    # The sample's state was made by hand, and its clock says that this was long ago.
    assert re.sub(r"This state is \d+ s old: is the engine running\?\n", "", done.stderr) == ""


def test_the_readmes_example_works(tmp_path: Path) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for block in blocks:
        subprocess.run(["bash", "-euc", block], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True, timeout=30)
    assert (tmp_path / "decisions.jsonl").read_text().count('"kind":"leader_and_isr"') == 2


def test_the_readme_lists_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"| `isrflow {name}" not in readme] == []


def test_help_is_fast_and_leaves_spark_alone() -> None:
    program = (
        "import sys; from cli import command; command(['--help'], standalone_mode=False); "
        "slow = {'pyspark', 'pyarrow', 'pandas', 'prometheus_client', 'rich', 'kafka'} & set(sys.modules); "
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=10)
