"""How tests are shared between workers, and which tests run a second time."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.scheduling import SLOW, group, put_in_order
from tests.support.second_chance import SECOND_CHANCES_MAX
from tests.tidy.test_tidy import ROOT, name_of, python_files

CONFTEST = """
from tests.support.scheduling import group
from tests.support.second_chance import Failures

def pytest_configure(config):
    config.pluginmanager.register(Failures(config))
    config.addinivalue_line("markers", "kraft: starts brokers")

def pytest_collection_modifyitems(items):
    group(items)
"""
FAILS_ONCE = """
import pathlib, pytest

@pytest.mark.kraft
@pytest.mark.parametrize("one", ["a@b"])
def test_server(one):
    seen = pathlib.Path("seen")
    before = seen.exists()
    seen.touch()
    assert before
"""
MANY_FAIL = f"""
import pytest

@pytest.mark.kraft
@pytest.mark.parametrize("number", range({SECOND_CHANCES_MAX + 1}))
def test_server(number):
    assert False
"""


class Item:
    """The part of a test that its place in the order depends on."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid = nodeid
        self.user_properties: list[tuple[str, object]] = []
        self._marks = {name: getattr(pytest.mark, name).mark for name in marks}

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self._marks[mark.name] = mark.mark

    def get_closest_marker(self, name: str) -> object:
        return self._marks.get(name)


def run(directory: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "tests.support.second_chance", "-q"]
    return subprocess.run(command, cwd=directory, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


def test_groups_come_first_then_other_slow_files_and_quick_ones_last() -> None:
    items: list[Any] = [
        Item("tests/quick.py::test_1"),
        Item("tests/long.py::test_1", "kraft"),
        Item("tests/long.py::test_2", "kraft"),
        Item("tests/bus.py::test_1", "kafka_bus"),
        Item("tests/short.py::test_1", "zookeeper"),
    ]
    group(items)
    put_in_order(items)
    files = list(dict.fromkeys(item.nodeid.split("::")[0] for item in items))
    assert files == ["tests/bus.py", "tests/short.py", "tests/long.py", "tests/quick.py"]


def test_every_user_of_the_shared_kafka_node_is_marked() -> None:
    """Without the mark, each worker would start a node."""
    texts = {path: path.read_text() for path in python_files("tests")}

    def is_marked(path: Path) -> bool:
        return any("mark.kafka_bus" in texts.get(one, "") for one in (path, path.with_name("conftest.py")))

    users = [path for path, text in texts.items() if re.search(r"\bkafka_(servers|url): str", text)]
    assert users
    assert [name_of(path) for path in users if path.stem != "conftest" and not is_marked(path)] == []


def test_make_test_leaves_out_what_starts_servers_unless_it_is_chosen() -> None:
    assert f'-m "smoke or not ({" or ".join(SLOW)})"' in (ROOT / "Makefile").read_text()


def test_what_fails_once_with_real_servers_is_named_as_flaky(tmp_path: Path) -> None:
    ran = run(tmp_path, FAILS_ONCE)
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.endswith("1 flaky, passed only the second time:\n  test_it.py::test_server[a@b]\n")


def test_nothing_else_runs_again(tmp_path: Path) -> None:
    ran = run(tmp_path, f"{FAILS_ONCE}\ndef test_rule():\n    assert False\n")
    assert (ran.returncode, ran.stdout.count("short test summary")) == (1, 1)


def test_many_failures_have_one_cause_and_run_once(tmp_path: Path) -> None:
    ran = run(tmp_path, MANY_FAIL)
    assert (ran.returncode, ran.stdout.count("short test summary")) == (1, 1)
