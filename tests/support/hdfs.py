"""HDFS on loopback: one NameNode and one DataNode, of the version of Hadoop that Spark ships."""

import json
import subprocess
from pathlib import Path
from urllib.request import urlopen
from xml.sax.saxutils import escape

from brokers.launch.ports import free_ports
from conf.jars import HDFS, fetch
from conf.java import java_home
from tests.support.engine import START_TIMEOUT_S, STOP_TIMEOUT_S
from tests.support.spark_cluster import LOOPBACK, SPARK_HOME
from tests.support.waiting import wait_until

HTTP_TIMEOUT_S = 10.0
_SERVER = "org.apache.hadoop.hdfs.server"
_NAME_NODE, _DATA_NODE = f"{_SERVER}.namenode.NameNode", f"{_SERVER}.datanode.DataNode"
_JVM_OPTIONS = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Hdfs:
    """The two processes; their settings, logs and files are in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        port, self._http_port = free_ports(2)
        self.uri = f"hdfs://{LOOPBACK}:{port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Make an empty file system, and wait until a file can be written."""
        self._directory.mkdir()
        (self._directory / "core-site.xml").write_text(_site({"fs.defaultFS": self.uri}))
        (self._directory / "hdfs-site.xml").write_text(_site(self._settings()))
        subprocess.run(
            [*self._command(_NAME_NODE), "-format", "-nonInteractive"],
            check=True,
            capture_output=True,
            timeout=START_TIMEOUT_S,
        )
        for server in (_NAME_NODE, _DATA_NODE):
            with (self._directory / f"{server.rpartition('.')[2]}.log").open("ab") as output:
                self._processes.append(subprocess.Popen(self._command(server), stdout=output, stderr=output))
        wait_until(self._has_data_node, "a DataNode of HDFS", START_TIMEOUT_S)

    def _settings(self) -> dict[str, str]:
        anywhere = ("dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address")
        return {
            "dfs.replication": "1",
            "dfs.namenode.name.dir": (self._directory / "names").as_uri(),
            "dfs.datanode.data.dir": (self._directory / "blocks").as_uri(),
            "dfs.namenode.http-address": f"{LOOPBACK}:{self._http_port}",
            **dict.fromkeys(anywhere, f"{LOOPBACK}:0"),
            # The machine's own name may lead to an address on which the DataNode does not listen.
            "dfs.datanode.hostname": LOOPBACK,
        }

    def _command(self, server: str) -> list[str]:
        class_path = ":".join(map(str, (self._directory, *fetch(HDFS), SPARK_HOME / "jars" / "*")))
        return [str(java_home() / "bin" / "java"), *_JVM_OPTIONS, "-cp", class_path, server]

    def _has_data_node(self) -> bool:
        for process in self._processes:
            assert process.poll() is None, f"a server of HDFS ended; see the logs in {self._directory}"
        try:
            with urlopen(
                f"http://{LOOPBACK}:{self._http_port}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState",
                timeout=HTTP_TIMEOUT_S,
            ) as answer:
                # The NameNode tells its state a little later than it answers.
                return any(state["NumLiveDataNodes"] for state in json.load(answer)["beans"])
        except OSError:
            return False

    def names(self, directory: str) -> list[str]:
        """List what is in a directory, such as ``/checkpoint/offsets``."""
        found = json.loads(self._asked(directory, "LISTSTATUS"))
        return [one["pathSuffix"] for one in found["FileStatuses"]["FileStatus"]]

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return self._asked(path, "OPEN")

    def _asked(self, path: str, operation: str) -> bytes:
        url = f"http://{LOOPBACK}:{self._http_port}/webhdfs/v1{path}?op={operation}"
        with urlopen(url, timeout=HTTP_TIMEOUT_S) as answer:
            return bytes(answer.read())

    def kill(self) -> None:
        """End both at once."""
        for process in self._processes:
            process.kill()
            process.wait(STOP_TIMEOUT_S)


def _site(settings: dict[str, str]) -> str:
    """Write a file of settings in Hadoop's form."""
    properties = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    )
    return "<configuration>\n" + "\n".join(properties) + "\n</configuration>\n"
