"""Run everything. Failed tests that start real servers run once more, alone, and are named as flaky if they pass.

On a shared machine a real broker or Spark may get no CPU for longer than a session. A test that passes only the second
time still has a defect, or the product has, so the last lines name it. Nothing else runs again.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scheduling import STARTS_SERVERS

FAILED = "isrflow/failed"
PYTEST = (sys.executable, "-m", "pytest")
SECOND_CHANCES_MAX = 20


class Failures:
    """A plugin that keeps the failed tests of a run in pytest's cache, and whether each starts real servers."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = config.cache
        self._failed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a failure. xdist adds the group to the name of a test."""
        if report.failed:
            name = report.nodeid
            if name.rfind("@") > name.rfind("]"):
                name = name.rsplit("@", 1)[0]
            self._failed[name] = (STARTS_SERVERS, True) in map(tuple, report.user_properties)

    def pytest_sessionfinish(self) -> None:
        """Write the failures, also if there are none."""
        if self._cache is not None:
            self._cache.set(FAILED, self._failed)


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments, then run again the failures that may. Return the exit code."""
    code = subprocess.call([*PYTEST, *arguments])
    if code != pytest.ExitCode.TESTS_FAILED:
        return code
    failed: dict[str, bool] = json.loads(Path(".pytest_cache/v", FAILED).read_text())
    again = [name for name, starts_servers in failed.items() if starts_servers]
    if len(again) < len(failed) or len(again) > SECOND_CHANCES_MAX:
        return code
    code = subprocess.call([*PYTEST, *again])
    if code == pytest.ExitCode.OK:
        print(f"{len(again)} flaky, passed only the second time:", *again, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
