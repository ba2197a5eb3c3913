"""What Spark's loggers write, and where."""

import subprocess
from pathlib import Path

import pyspark
import pytest

from conf import LOG4J2
from conf.java import java_home
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.spark
SOURCE = Path(__file__).with_name("LogsStack.java")
JARS = Path(pyspark.__file__).with_name("jars")


def logged_to(stacks: Path) -> list[str]:
    """Return the lines that go to standard error while stacks go to a file."""
    class_path = ":".join(map(str, JARS.glob("log4j-*.jar")))
    told = (f"-Dlog4j2.configurationFile={LOG4J2.as_uri()}", "-Disrflow.stacks=file", f"-Disrflow.stacks.file={stacks}")
    command = [str(java_home() / "bin" / "java"), "-cp", class_path, *told, str(SOURCE)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stderr.splitlines()


@pytest.mark.parametrize("is_full", [False, True])
def test_stacks_go_to_their_file_and_nowhere_else_if_its_disk_is_full(tmp_path: Path, is_full: bool) -> None:
    stacks = Path("/dev/full") if is_full else tmp_path / "stacks.log"
    (line,) = logged_to(stacks)
    assert line.endswith("ERROR other: to standard error")
    assert is_full or "with a stack" in stacks.read_text()
