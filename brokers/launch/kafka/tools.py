"""The admin tools of Kafka's own release."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from brokers.launch.kafka.node import JVM_FLAGS, class_archive
from conf.cache import cache_dir
from conf.class_archive import ClassArchive
from conf.jars import jars
from conf.java import java_home
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS

TOOL_TIMEOUT_S = 90.0
TOPICS = "TopicCommand"
REASSIGN_PARTITIONS = "reassign.ReassignPartitionsCommand"
LEADER_ELECTION = "LeaderElectionCommand"
FEATURES = "FeatureCommand"
TRANSACTIONS = "TransactionsCommand"
# This tool comes with the brokers' jars, and not with the other tools.
CONFIGS = "kafka.admin.ConfigCommand"
TOOLS = KAFKA_VERSIONS[KAFKA_VERSION].tools
_BROKERS = KAFKA_VERSIONS[KAFKA_VERSION].jars


class ToolError(Exception):
    """A tool failed; the message has its output."""


def tools_archive(home: Path) -> ClassArchive:
    """Return the archive of the classes of ``TOOLS`` for the Java at ``home``, written or not.

    It is beside the jars. With it a tool takes 40 % less CPU time.
    """
    return ClassArchive(cache_dir() / "classes", f"{TOOLS}-{KAFKA_VERSION}", home)


def run_tool(
    name: str,
    bootstrap: str,
    arguments: Sequence[str],
    set_name: str = TOOLS,
    *,
    is_controller: bool = False,
    archive_flags: Sequence[str] | None = None,
) -> str:
    """Run the tool ``org.apache.kafka.tools.<name>``, or ``CONFIGS``, against ``bootstrap``, and return its output.

    ``bootstrap`` are brokers, or a controller if ``is_controller``. ``set_name`` names the jars (``conf.jars``), which
    decide the tool's version; for ``TOOLS``, ``CONFIGS`` comes from the brokers' jars. ``archive_flags`` replace the
    options that use an archive of classes. Raises ``ToolError``, ``JarsError`` or ``JavaError``.
    """
    home = java_home()
    is_of_brokers = name == CONFIGS
    found = _BROKERS if is_of_brokers and set_name == TOOLS else set_name
    if archive_flags is None:
        archives = {kafka.jars: class_archive(kafka.number, home) for kafka in KAFKA_VERSIONS.values()}
        archives[TOOLS] = tools_archive(home)
        archive_flags = archives[found].options if found in archives else ()
    java = [str(home / "bin" / "java"), "-Xmx128m", *JVM_FLAGS, *archive_flags]
    class_path = ":".join(map(str, jars(found)))
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
