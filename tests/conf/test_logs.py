"""Log lines: their level, and what other programs write between them."""

import json
import subprocess
import sys
from typing import Any

from conf.foreign_lines import LINE_BYTES_MAX, json_line
from tests.support.waiting import TIMEOUT_S


def lines_of(program: str, code: int = 0) -> list[Any]:
    """Run a program, and parse every line of its standard error."""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_what_children_and_python_write_becomes_json_and_keeps_its_order() -> None:
    said = b'a child says "x"\n\xff\n\n{}\n[1]\nhalf\n'
    program = f"""
import subprocess, sys, warnings
from conf.foreign_lines import as_json
from conf.logs import configure
configure("json")
import structlog
with as_json():
    structlog.get_logger().info("ours", url="kafka://user:hunter2@host:1")
    subprocess.run([sys.executable, "-c", "import os; os.write(2, bytes.fromhex('{said.hex()}'))"])
    warnings.warn("careful")
print('{{"after": 1}}', file=sys.stderr)
"""
    ours, *foreign, after = lines_of(program)
    assert (ours["event"], ours["level"], ours["url"]) == ("ours", "info", "kafka://***@host:1")
    events = [line.get("event") for line in foreign]
    assert events[:3] == ['a child says "x"', "\\xff", None]
    assert events[3] == "[1]"
    assert events[4] == "half"
    assert any("careful" in event for event in events if event)
    assert {line["source"] for line in foreign if line} == {"stderr"}
    assert after == {"after": 1}


JAVA = """2026-11-28T10:00:00.000Z ERROR Executor: a task failed
java.lang.IllegalStateException: no
\tat org.apache.spark.A.b(A.scala:1)
\tat org.apache.spark.C.d(C.scala:2)
Caused by: java.io.IOException: gone
\t... 9 more
"""
PYTHON = """Traceback (most recent call last):
  File "a.py", line 1, in a
    raise KeyError(1)
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in a
    raise Odd("so")
a.Odd: so
"""


def test_a_stack_trace_is_one_event() -> None:
    said = ("before\n" + JAVA + "between\n" + PYTHON + "after\n").encode()
    program = f"""
import os
from conf.foreign_lines import as_json
with as_json():
    os.write(2, bytes.fromhex("{said.hex()}"))
"""
    before, java, between, python, after = lines_of(program)
    assert [line["event"] for line in (before, between, after)] == ["before", "between", "after"]
    assert java["event"] == JAVA.splitlines()[0]
    assert java["stack"].splitlines() == JAVA.splitlines()[1:]
    assert python["event"] == "a.Odd: so"
    assert python["stack"].splitlines() == [line for line in PYTHON.splitlines()[1:] if line]
    assert [line["level"] for line in (before, java, python)] == ["warning", "error", "warning"]
    assert "stack" not in before


def test_a_stack_trace_has_a_bound() -> None:
    program = f"""
import os
from conf.foreign_lines import as_json
with as_json():
    for number in range({2 * LINE_BYTES_MAX} // 50):
        os.write(2, b"\\tat " + b"x" * 45 + b"\\n")
"""
    lines = lines_of(program)
    assert len(lines) == 2
    assert all(len(line["stack"]) <= 2 * LINE_BYTES_MAX for line in lines)


def test_a_child_that_lives_on_does_not_hold_up_the_end() -> None:
    program = """
import subprocess
from conf.foreign_lines import as_json
with as_json():
    child = subprocess.Popen(["sleep", "30"])
child.kill()
"""
    assert lines_of(program) == []


def test_a_line_has_a_bound() -> None:
    program = f"""
import os
from conf.foreign_lines import as_json
with as_json():
    os.write(2, b"x" * {3 * LINE_BYTES_MAX})
"""
    events = [line["event"] for line in lines_of(program)]
    assert sum(map(len, events)) == 3 * LINE_BYTES_MAX
    assert len(events) > 1


def test_what_spark_says_at_every_start_is_left_out_unless_all_is_logged() -> None:
    said = [
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "Starting Streaming TransformWithStateInPandas Python worker.",
        "Streaming TransformWithStateInPandas Python worker Completed execution of UDF: <bound method>.",
        "Streaming TransformWithStateInPandas Python worker failed",
    ]
    for level, shown in (("info", [("warning", said[3])]), ("debug", [("debug", line) for line in said[:3]])):
        program = f"""
import sys
from conf.foreign_lines import as_json
with as_json("{level}"):
    print({chr(10).join(said)!r}, file=sys.stderr)
"""
        lines = [(line["level"], line["event"]) for line in lines_of(program)]
        assert set(shown) <= set(lines)
        assert len(lines) == (4 if level == "debug" else 1)


def test_less_severe_lines_are_left_out() -> None:
    program = """
from conf.logs import configure
configure("json", "warning")
import structlog
log = structlog.get_logger()
log.info("no")
log.warning("yes")
log.error("yes")
"""
    assert [line["level"] for line in lines_of(program)] == ["warning", "error"]


def test_a_password_in_a_foreign_line_is_masked() -> None:
    assert b"hunter2" not in json_line(b"cannot reach kafka://user:hunter2@host:1")


def test_a_stack_shows_no_local_variables() -> None:
    program = """
import structlog
from conf.logs import configure
configure("console")
password = "-".join(["hunter", "2"])
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("failed")
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert "ZeroDivisionError" in done.stderr
    assert "hunter-2" not in done.stderr
