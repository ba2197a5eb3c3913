"""How Spark is started: which process handles SIGTERM, and how errors are reported."""

import subprocess
import sys

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from streaming import session

ASK = "import signal; print(signal.getsignal(signal.SIGTERM).name)"


def disposition_of_a_child() -> str:
    # pyspark starts its JVM in this way: a function runs in the child before the program.
    done = subprocess.run([sys.executable, "-c", ASK], preexec_fn=lambda: None, capture_output=True, text=True)
    return done.stdout.strip()


def test_only_the_jvm_ignores_sigterm() -> None:
    assert disposition_of_a_child() == "SIG_DFL"
    with session.jvm_leaves_sigterm():
        assert disposition_of_a_child() == "SIG_IGN"
    assert disposition_of_a_child() == "SIG_DFL"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("An error occurred.\n: java.io.IOException: no space\n\tat org.x.Y\n\t... 3 more\n", None),
        ("", "Py4JError"),
        # A message may have such a line of its own.
        ("Job aborted\nat stage 3\n\tat org.x.Y", "Job aborted at stage 3"),
    ],
)
def test_a_spark_error_is_reported_without_its_stack(text: str, reason: str | None) -> None:
    assert session.reason_of(Py4JError(text)) == (reason or "An error occurred. : java.io.IOException: no space")


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("Answer from Java side is empty")]
)
def test_an_error_of_the_bridge_to_a_jvm_that_ended_says_so(error: Exception) -> None:
    assert session.reason_of(error) == f"its JVM is gone or does not answer: {error}"
