"""A batch that a stop cuts off: Spark takes our exception for an interruption and ends the query without an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_blocks import ROOT
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.spark

# The batch begins, and does not end. A stop cancels its job. It also interrupts the thread that collects the outcomes,
# which notices only if it waits in Java at that moment: BLOCKED makes sure of that.
PROGRAM = """
import sys, time
from pathlib import Path
from conf.settings import Settings
from streaming.query import outcomes_of
from streaming.session import build_session, choose_java
from tests.support.waiting import wait_until

folder = Path(sys.argv[1])
IN_A_TASK, BLOCKED = folder / "in-a-task", folder / "blocked"

class Blocked:
    def toArrow(self):
        BLOCKED.touch()
        session._jvm.java.lang.Thread.sleep(3_600_000)

def hang(batches):
    for batch in batches:
        IN_A_TASK.touch()
        time.sleep(3_600)
        yield batch

choose_java()
session = build_session(Settings(), folder)
rows = session.readStream.format("rate").load().mapInArrow(hang, "timestamp TIMESTAMP, outcome LONG")
for begun in (IN_A_TASK, BLOCKED):
    writer = rows.writeStream.option("checkpointLocation", f"{begun}-checkpoint")
    blocks = begun == BLOCKED
    query = writer.foreachBatch(lambda batch, number: outcomes_of(Blocked() if blocks else batch)).start()
    wait_until(begun.exists, f"the batch to begin: {begun.name}")
    query.stop()
    print(query.exception())
"""


def test_a_stop_in_the_middle_of_a_batch_is_no_failure(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    # Another test may have set PYTHONSAFEPATH for the children of this process.
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * TIMEOUT_S, env=environment)
    assert (done.returncode, done.stdout) == (0, "None\nNone\n"), done.stderr[-3_000:]
    assert "StackOverflowError" not in done.stderr, done.stderr[:3_000]
