"""A batch that a stop cuts off: Spark ends the query without a word."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.spark

# The batch begins, and does not end.
PROGRAM = """
import sys, time
from pathlib import Path
from conf.settings import Settings
from streaming.query import outcomes_of
from streaming.session import build_session, choose_java
from tests.support.waiting import wait_until

folder = Path(sys.argv[1])

def hang(batches):
    for batch in batches:
        (folder / "begun").touch()
        time.sleep(3_600)
        yield batch

choose_java()
session = build_session(Settings(), folder)
rows = session.readStream.format("rate").load().mapInArrow(hang, "timestamp TIMESTAMP, outcome LONG")
writer = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
query = writer.foreachBatch(lambda batch, number: outcomes_of(batch)).start()
wait_until((folder / "begun").exists, "the batch to begin")
query.stop()
print(query.exception())
"""


def test_a_stop_in_the_middle_of_a_batch_overflows_no_stack(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * TIMEOUT_S)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr[-3_000:]
    assert "\tat " not in done.stderr, done.stderr[:3_000]
