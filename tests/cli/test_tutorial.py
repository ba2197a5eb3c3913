"""The README and the tutorial work as pasted into a fresh shell, and every block of a document is run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.doc_blocks import blocks, blocks_of
from tests.support.rules_engine import RulesEngine

LOG = Path(__file__).parents[1] / "brokers/shadow/logs/kafka-4.1.0.tar.xz"
# Each language that a document's blocks have, and the test that runs them.
RUN_BY = {
    ("README.md", "bash"): "here",
    ("tutorial.md", "bash"): "here",
    ("shadow.md", "bash"): "here",
    ("producers.md", "python"): "tests/isrflow/test_producers_guide.py",
}
# Drawings, output, and settings of other programs.
SHOWN = ("", "text", "yaml")
# If a line fails, the programs that the script has started end with it.
END_ALL = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"


def paste(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as in a clone after ``make setup``, with nothing of isrflow on the path."""
    (folder / ".venv").symlink_to(sys.prefix)
    fresh = {"HOME": str(folder), "PATH": os.defpath, "LANG": "C.UTF-8"}
    return subprocess.run(
        ["bash", "-euc", f"{END_ALL}\n{script}"], cwd=folder, env=fresh, capture_output=True, text=True, timeout=120
    )


def test_every_block_of_the_documents_is_run() -> None:
    kinds = {(block.document, block.language) for block in blocks() if block.language not in SHOWN}
    assert kinds == set(RUN_BY)


def test_the_readmes_example_works(tmp_path: Path) -> None:
    done = paste("\n".join(blocks_of("README.md", "bash")), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "decisions.jsonl").read_text().count('"kind":"leader_and_isr"') == 2


def test_the_guide_to_shadows_works(tmp_path: Path) -> None:
    shutil.copy(LOG, tmp_path / "node-3.tar.xz")
    done = paste("\n".join(blocks_of("shadow.md", "bash")), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Partitions were without a leader 10 times." in done.stdout, "the report"
    assert "frail-0: leader 2 -> 3" in done.stdout, "the explanation"
    assert "(LEADER_FENCED" in done.stdout, "the decisions"


def test_the_tutorial_works(tmp_path: Path) -> None:
    engine = RulesEngine()
    engine.start(tmp_path / "data" / "bus.db", broker_session_timeout_ms=3_000)
    try:
        done = paste("\n".join([*blocks_of("tutorial.md", "bash"), "wait"]), tmp_path)
    finally:
        engine.stop()
    assert done.returncode == 0, done.stderr
    assert "LEADER_FENCED" in done.stdout
    assert "Broker 1 was passed over because it was fenced." in done.stdout, "the explanation"
