"""Kafka's own admin tools, as they come in its release."""

import subprocess
from collections.abc import Sequence

from conf.jars import jars
from conf.java import java_home
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS

TOOL_TIMEOUT_S = 90.0
TOPICS = "TopicCommand"
REASSIGN_PARTITIONS = "reassign.ReassignPartitionsCommand"
LEADER_ELECTION = "LeaderElectionCommand"
FEATURES = "FeatureCommand"
# This one is not among the other tools, and comes with the brokers' jars.
CONFIGS = "kafka.admin.ConfigCommand"
_BROKERS, _TOOLS = KAFKA_VERSIONS[KAFKA_VERSION].jars, KAFKA_VERSIONS[KAFKA_VERSION].tools


class ToolError(Exception):
    """A tool failed; the message contains its output."""


def run_tool(
    name: str, bootstrap: str, arguments: Sequence[str], set_name: str = _TOOLS, *, is_controller: bool = False
) -> str:
    """Run the tool ``org.apache.kafka.tools.<name>``, or ``CONFIGS``, against ``bootstrap``, and return its output.

    ``bootstrap`` are brokers, or a controller. ``set_name`` names the jars (``conf.jars``), which decide the version of
    the tool. ``CONFIGS`` of Kafka 4 is found by itself.
    Raises ``ToolError``, ``JarsError`` or ``JavaError``.
    """
    java = [str(java_home() / "bin" / "java"), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    is_of_brokers = name == CONFIGS
    class_path = ":".join(map(str, jars(_BROKERS if is_of_brokers and set_name == _TOOLS else set_name)))
    main = name if is_of_brokers else f"org.apache.kafka.tools.{name}"
    connect_by = "--bootstrap-controller" if is_controller else "--bootstrap-server"
    command = [*java, "-cp", class_path, main, connect_by, bootstrap, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{name} {' '.join(arguments)}: not done in {TOOL_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        raise ToolError(f"{name} {' '.join(arguments)}: {done.stdout.strip()}\n{done.stderr.strip()}")
    return done.stdout
