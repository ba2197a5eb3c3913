"""The package ``isrflow`` stands alone: a program may have modules with the names of isrflow's other packages."""

import subprocess
import sys
from pathlib import Path

from bus.embedded import EmbeddedBus
from isrflow.contract import ENGINE_KINDS, HEARTBEATS, LOG_END_OFFSET
from state.events import ENGINE_EVENTS, AnyEvent
from tests.support.rooms import ROOMS
from tests.support.waiting import TIMEOUT_S

HEAVY = ("pyspark", "pandas", "pyarrow", "numpy", "kafka", "confluent_kafka", "click", "rich", "structlog")
PROGRAM = f"""
import sys
import isrflow
with isrflow.connect(sys.argv[1]) as bus:
    print(bus.publish({{"kind": "delete_topic", "topic": "t"}}), list(bus.decisions()))
print(sorted({{name.partition(".")[0] for name in sys.modules}} & set({HEAVY})))
"""


def test_a_program_with_modules_of_the_same_names_uses_a_bus(tmp_path: Path) -> None:
    EmbeddedBus(tmp_path / "bus.db").close()
    for room in ROOMS:
        if room != "isrflow":
            (tmp_path / f"{room}.py").write_text("raise SystemExit('the package has imported this module')\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py", "bus.db"], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (done.stdout, done.stderr) == ("1 []\n[]\n", ""), done.stderr


def test_the_names_of_events_are_those_of_the_contract() -> None:
    kinds = {str(kind.__struct_config__.tag) for kind in AnyEvent.__args__}
    assert {str(kind.__struct_config__.tag) for kind in ENGINE_EVENTS} == ENGINE_KINDS
    assert {*HEARTBEATS, LOG_END_OFFSET} <= kinds
