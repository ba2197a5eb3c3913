"""Programs that use Kafka's own classes: its tools, and our small sources, which Java compiles when it starts."""

import subprocess
from collections.abc import Iterable

import pytest

from brokers.launch.kafka.node import JVM_FLAGS
from conf.jars import fetch
from conf.java import java_home
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, KafkaVersion
from tests.support.waiting import TIMEOUT_S


def run_java(
    program: object,
    arguments: Iterable[object] = (),
    lines: Iterable[str] = (),
    kafka: KafkaVersion = KAFKA_VERSIONS[KAFKA_VERSION],
) -> str:
    """Run a class or a source with ``lines`` on standard input, and return what it prints.

    The options of a quick start matter more than anything else here, because most of the time goes into compiling.
    """
    class_path = ":".join(map(str, fetch(kafka.jars)))
    command = [str(java_home() / "bin" / "java"), *JVM_FLAGS, "-cp", class_path, str(program), *map(str, arguments)]
    given = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=TIMEOUT_S)
    if "jdk.compiler" in done.stderr:
        pytest.skip("this Java is a runtime without a compiler")
    assert done.returncode == 0, done.stderr
    return done.stdout
