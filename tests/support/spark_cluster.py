"""A standalone Spark cluster on loopback: a master, workers, and the executors that these start.

Their JVMs use the engine's archive of classes, if there is one. For that their class paths begin as the engine's does.
"""

import contextlib
import os
import re
import subprocess
from pathlib import Path

import psutil
import pyspark

from streaming.session import choose_java, class_archive, own_jars
from tests.support.engine import START_TIMEOUT_S, STOP_TIMEOUT_S
from tests.support.waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"Starting Spark master at (spark://[^\s]+)")
_EXECUTOR = "CoarseGrainedExecutorBackend"


def jvm_options() -> str:
    """Return the options for each JVM of a cluster. ``choose_java`` comes first."""
    shared = (f'"{option}"' for option in class_archive().options)
    return " ".join(("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *shared))


def class_path() -> str:
    """Return how the class path of each JVM of a cluster begins."""
    return os.pathsep.join(map(str, own_jars()))


class SparkCluster:
    """The processes of a cluster; their logs and folders are in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[psutil.Process] = []
        self.master = ""
        choose_java()

    def start(self, workers: int) -> None:
        """Start a master, and workers with one core each."""
        self._run("master", "master.Master")
        log = self._directory / "master.log"
        wait_until(lambda: _ADDRESS.search(log.read_text()) is not None, "the Spark master", START_TIMEOUT_S)
        found = _ADDRESS.search(log.read_text())
        assert found is not None
        self.master = found[1]
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> psutil.Process:
        """Start one more worker, which joins the cluster by itself."""
        name = f"worker-{len(self.workers)}"
        limits = ("--cores", "1", "--memory", "700m", "--work-dir", str(self._directory / name))
        self.workers.append(psutil.Process(self._run(name, "worker.Worker", *limits, self.master).pid))
        return self.workers[-1]

    def executors(self, *workers: psutil.Process) -> list[psutil.Process]:
        """Return the executors of ``workers``, or of all workers."""
        children = (child for worker in workers or self.workers if worker.is_running() for child in worker.children())
        return [child for child in children if any(_EXECUTOR in part for part in _command(child))]

    def _run(self, name: str, which: str, *arguments: str) -> "subprocess.Popen[bytes]":
        environment = os.environ | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_DAEMON_CLASSPATH": class_path(),
            "SPARK_DAEMON_JAVA_OPTS": jvm_options(),
        }
        listens = ("--host", LOOPBACK, "--port", "0", "--webui-port", "0")
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{which}", *listens, *arguments]
        with (self._directory / f"{name}.log").open("ab") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
        self._processes.append(process)
        return process

    def kill(self) -> None:
        """End all processes at once."""
        for process in self._processes:
            if process.poll() is None:
                for one in (*psutil.Process(process.pid).children(recursive=True), process):
                    _kill(one)
            process.wait(STOP_TIMEOUT_S)


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:
        return []


def _kill(process: "psutil.Process | subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
