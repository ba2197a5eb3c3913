"""How Spark is started: who hears SIGTERM meanwhile, and how its errors are told."""

import subprocess
import sys

import pytest
from py4j.protocol import Py4JError

from streaming import session

ASK = "import signal; print(signal.getsignal(signal.SIGTERM).name)"


def disposition_of_a_child() -> str:
    # As pyspark starts its JVM: with a function that runs in the child before the program.
    done = subprocess.run([sys.executable, "-c", ASK], preexec_fn=lambda: None, capture_output=True, text=True)
    return done.stdout.strip()


def test_only_the_jvm_ignores_sigterm() -> None:
    assert disposition_of_a_child() == "SIG_DFL"
    with session.jvm_leaves_sigterm():
        assert disposition_of_a_child() == "SIG_IGN"
    assert disposition_of_a_child() == "SIG_DFL"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("An error occurred.\n: java.io.IOException: no space\n\tat org.x.Y\n\t... 3 more\n", None),
        ("", "Py4JError"),
    ],
)
def test_an_error_of_sparks_is_told_without_its_stack(text: str, told: str | None) -> None:
    assert session.reason_of(Py4JError(text)) == (told or "An error occurred. : java.io.IOException: no space")
