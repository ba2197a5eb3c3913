"""Change the rules in thousands of small ways, one at a time, and check that some test fails for each.

``README.md`` says how to run it and what it found. mutmut makes the mutants and finds out which
tests reach each function; this runner collects the tests once, and forks for each mutant, because starting
pytest takes longer than most mutants live. The tests of the mutant's own module come first.
"""

import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.rooms import ROOMS

ROOT = Path(__file__).parents[2]
MUTATED = "controller_logic."
TESTS = ("tests/controller_logic", "tests/exhaustive", "tests/scenarios/test_stories.py", "tests/state")
ARGUMENTS = (
    "-q",
    "-p",
    "no:cacheprovider",
    "--assert=plain",
    "--deselect",
    "tests/scenarios/test_stories.py::test_the_operators_give_the_written_output",
)
TIMEOUT_S = 60
MEMORY_BYTES_MAX = 2 << 30
VERDICTS = {0: "survived", 1: "killed", -signal.SIGALRM: "killed by the time limit"}
CONFIG = """
[tool.pytest.ini_options]
timeout = 300
addopts = "--strict-markers --strict-config --import-mode=importlib"
markers = ["spark: starts a Spark session", "cluster: starts broker processes"]
[tool.mutmut]
source_paths = ["controller_logic"]
use_git_change_detection = false
"""


def lay_out(target: Path) -> None:
    """Copy what the tests need, and let mutmut make its mutants in the copy."""
    target.mkdir(parents=True)
    for folder in (*ROOMS, "tests", "docs"):
        shutil.copytree(ROOT / folder, target / folder, ignore=shutil.ignore_patterns("__pycache__"))
    others = [room for room in ROOMS if room != "controller_logic"]
    lists = f"also_copy = {json.dumps([*others, 'docs'])}\n"
    lists += (
        f"pytest_add_cli_args = {json.dumps(ARGUMENTS)}\npytest_add_cli_args_test_selection = {json.dumps(TESTS)}\n"
    )
    (target / "pyproject.toml").write_text(CONFIG + lists)
    # The name fits no mutant, so mutmut makes them and finds the tests that reach them, but runs none.
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", "nothing"]
    with (target / "mutmut.log").open("w") as out:
        subprocess.run(command, cwd=target, check=False, stdout=out, stderr=subprocess.STDOUT)
    if not (target / "mutants" / "mutmut-stats.json").exists():
        raise SystemExit(f"mutmut made no mutants: {target / 'mutmut.log'} says why")


class Mutations:
    """A pytest plugin that replaces the loop over the tests, and runs them against one mutant after another."""

    def __init__(self, mutants: list[str], reached: dict[str, list[str]], verdicts: Path) -> None:
        self.mutants, self.reached, self.verdicts = mutants, reached, verdicts

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        with self.verdicts.open("a", buffering=1) as out:
            for mutant in self.mutants:
                function = mutant.rpartition("__mutmut_")[0]
                named = set(self.reached.get(function, ()))
                own = f"test_{mutant.removeprefix(MUTATED).partition('.')[0]}.py"
                items = sorted((i for i in session.items if i.nodeid in named), key=lambda item: own not in item.nodeid)
                out.write(f"{VERDICTS.get(code := _verdict(mutant, items), code)} {mutant}\n")
        return True


def _verdict(mutant: str, items: list[pytest.Item]) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(TIMEOUT_S)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        os.environ["MUTANT_UNDER_TEST"] = mutant
        # No process here lives long enough to need garbage collection.
        gc.disable()
        os._exit(any(_fails(item) for item in items))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _fails(item: pytest.Item) -> bool:
    """Run a test without a report: to write one, pytest parses the mutated file, which takes a second."""
    hook = item.ihook
    try:
        hook.pytest_runtest_setup(item=item)
        hook.pytest_runtest_call(item=item)
        hook.pytest_runtest_teardown(item=item, nextitem=None)
    except pytest.skip.Exception:
        return False
    except BaseException:
        return True
    return False


def main(target: Path) -> None:
    """Make the mutants under ``target`` if they are not there, run those that have no verdict yet, and count."""
    if not target.exists():
        lay_out(target)
    mutants_folder, verdicts = target / "mutants", target / "verdicts.txt"
    verdicts.touch()
    judged = {line.split()[-1] for line in verdicts.read_text().splitlines()}
    made = [
        name
        for path in sorted((mutants_folder / "controller_logic").glob("*.meta"))
        for name in json.loads(path.read_text())["exit_code_by_key"]
    ]
    reached = json.loads((mutants_folder / "mutmut-stats.json").read_text())["tests_by_mangled_function_name"]
    os.chdir(mutants_folder)
    sys.path.insert(0, str(mutants_folder))
    os.environ["MUTANT_UNDER_TEST"] = ""
    loop = Mutations([name for name in made if name not in judged], reached, verdicts)
    pytest.main([*ARGUMENTS, *TESTS], plugins=[loop])
    lines = verdicts.read_text().splitlines()
    print(*(line for line in lines if not line.startswith("killed")), sep="\n")
    print(len(lines), "mutants:", dict(Counter(line.rpartition(" ")[0] for line in lines)))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
