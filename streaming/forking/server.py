"""The process that forks: ``python -P -m streaming.forking.server MODULE...``, run in a directory of its own.

It imports the modules, and then forks a child for each launcher that connects. pandas and pyarrow start threads when
they are imported, but they handle a fork. The server ends when its standard input does, so it never outlives
the engine.
"""

import array
import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import traceback
from typing import Any

from pyspark.errors import PySparkRuntimeError

from streaming.forking.launcher import SOCKET
from streaming.pandas_warning import ignore_pandas_warning

READY = b"ready\n"
_WAITING_MAX = 64


def serve() -> None:
    """Fork a process for each launcher that connects, until standard input ends."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(SOCKET)
    server.listen(_WAITING_MAX)
    selector = selectors.DefaultSelector()
    selector.register(server, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    # The children of a JVM that ignores Ctrl-C ignore it too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        os.write(sys.stdout.fileno(), READY)
    except BrokenPipeError:
        # The engine ended while this process imported modules.
        return
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                return
            launcher, _ = server.accept()
            if os.fork() == 0:
                selector.close()
                server.close()
                _run(launcher)
            launcher.close()


def _run(launcher: socket.socket) -> None:
    """Run the module that Spark asked the launcher for, and exit with its code."""
    code = 1
    try:
        module, *arguments = _take_over(launcher)
        sys.argv = [module, *arguments]
        # Forget the module that is to run. Python warns if it was imported before, which is never so in a process that
        # was not forked.
        sys.modules.pop(module, None)
        _print_no_stack_of_a_closed_connection()
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException as error:
        if not _is_of_a_stopped_query(error):
            sys.excepthook(*sys.exc_info())
    finally:
        for last in (sys.stdout.flush, sys.stderr.flush, lambda: launcher.sendall(bytes([code & 0xFF]))):
            # The module may have closed a stream, and Spark may have ended the launcher.
            with contextlib.suppress(OSError, ValueError):
                last()
        os._exit(code)


def _is_of_a_stopped_query(error: BaseException | None) -> bool:
    """Return whether the JVM has closed its end, or has removed its socket before the process connected to it.

    The query has stopped, and the engine says why. A stack would look like a crash.
    """
    if isinstance(error, PySparkRuntimeError):
        return isinstance(error.__context__, ConnectionError | FileNotFoundError)
    return isinstance(error, ConnectionError)


def _print_no_stack_of_a_closed_connection() -> None:
    """Have Spark's daemon print no stack when the JVM closes the socket of one of its workers.

    The daemon prints what ends a worker, and offers no other way.
    """
    print_any = traceback.print_exc

    def print_exc(*given: Any, **named: Any) -> None:
        if not _is_of_a_stopped_query(sys.exc_info()[1]):
            print_any(*given, **named)

    traceback.print_exc = print_exc


def _take_over(launcher: socket.socket) -> list[str]:
    """Take over the launcher's streams, environment and folder; return the module and its arguments."""
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
    # Spark puts the files that were submitted with a job on the path.
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in given if path and path not in sys.path]
    return list(arguments)


if __name__ == "__main__":
    ignore_pandas_warning()
    for name in sys.argv[1:]:
        importlib.import_module(name)
    # Children share the memory of imported modules, as long as no garbage collection writes to it.
    gc.freeze()
    serve()
