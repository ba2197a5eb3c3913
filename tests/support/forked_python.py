"""Fork the Python processes that Spark starts for each query, instead of starting each of them cold.

Each query launches two interpreters of its own: one asks the source for offsets, one sets the state up. Each
spends half a CPU second on importing pandas, pyarrow and pyspark. For tests that start hundreds of queries,
one process imports them once and forks a child for each interpreter that Spark launches.
"""

import array
import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark import SparkContext

STOP_TIMEOUT_S = 10.0
# It loads neither site nor the caller's path, so that it starts in milliseconds.
_LAUNCHER = """#!{python} -IS
import array, json, os, socket, sys
hub = socket.socket(socket.AF_UNIX)
hub.connect({path!r})
request = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
streams = array.array("i", [0, 1, 2])
hub.sendmsg([len(request).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
hub.sendall(request)
os._exit((hub.recv(1) or b"\\1")[0])
"""


@contextlib.contextmanager
def forked_python(context: SparkContext, directory: Path) -> Iterator[None]:
    """Make ``context`` fork its Python processes until the block ends; the socket is in ``directory``."""
    path, launcher = directory / "hub", directory / "python"
    launcher.write_text(_LAUNCHER.format(python=sys.executable, path=str(path)))
    launcher.chmod(0o755)
    former = context.pythonExec
    with subprocess.Popen(
        [sys.executable, __file__, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    ) as hub:
        assert hub.stdin and hub.stdout
        try:
            assert hub.stdout.readline() == b"ready\n"
            context.pythonExec = str(launcher)
            yield
        finally:
            context.pythonExec = former
            hub.stdin.close()
            hub.wait(STOP_TIMEOUT_S)


def serve(path: str) -> None:
    """Fork a process for each launcher that connects, until standard input ends."""
    _import_what_takes_long()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    selector = selectors.DefaultSelector()
    selector.register(server, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                return
            launcher, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _run(launcher)
            launcher.close()


def _import_what_takes_long() -> None:
    for name in (
        "pyspark.worker",
        "pyspark.sql.worker.plan_data_source_read",
        "streaming.shard",
        "streaming.sources.embedded",
    ):
        importlib.import_module(name)


def _run(launcher: socket.socket) -> None:
    """Run the module that Spark asked the launcher for, and exit with its code."""
    code = 1
    try:
        arguments = _take_over(launcher)
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Spark may have killed the launcher.
        with contextlib.suppress(OSError):
            launcher.sendall(bytes([code & 0xFF]))
        os._exit(code)


def _take_over(launcher: socket.socket) -> list[str]:
    """Take over the launcher's streams, environment and folder; return its arguments (``-m module``)."""
    streams = array.array("i")
    head, ancillary, _, _ = launcher.recvmsg(4, socket.CMSG_LEN(3 * streams.itemsize))
    streams.frombytes(ancillary[0][2])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with launcher.makefile("rb") as requests:
        arguments, environment, folder = json.loads(requests.read(int.from_bytes(head, "big")))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    assert arguments[0] == "-m", f"only modules are run, not {arguments}"
    return list(arguments)


if __name__ == "__main__":
    serve(sys.argv[1])
