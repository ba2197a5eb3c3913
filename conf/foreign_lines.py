"""Lines that other programs write to this process's standard error, made into JSON.

Spark's JVM, its Python workers and Python's own warnings write plain text to the same place as the log, and a reader of
JSON could not parse it. So standard error becomes a pipe, and a thread copies each line to the original standard
error. A line that is a JSON object is copied unchanged. Any other line becomes the event of a JSON line.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec

from conf.logs import Level
from isrflow.masking import masked

STDERR = 2
LINE_BYTES_MAX = 64 * 1024
_CHUNK_BYTES = 64 * 1024
# The reader of the log may be slow, or not read at all.
DRAIN_TIMEOUT_S = 5.0
# Comes after everything that was written before the end. Children may keep the pipe open for longer.
_END = b"\0end of the log\n"
_WORKER = b"Streaming TransformWithStateInPandas Python worker"
# What Spark says at each good start. As warnings they would hide the real ones.
_EXPECTED = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Starting " + _WORKER + b".",
    _WORKER + b" finish init stage of Python runner. ",
    _WORKER + b" received parameters for UDF. ",
    _WORKER + b" Starting execution of UDF: ",
    _WORKER + b" Completed execution of UDF: ",
)


@contextlib.contextmanager
def as_json(level: Level = "info", write: Callable[[bytes], object] | None = None) -> Iterator[None]:
    """Make every line on standard error a JSON line while the block runs. ``write`` takes the lines instead.

    Lines that say nothing new are left out unless ``level`` is ``debug``. Nothing happens if Python's standard error is
    not the process's own, as in a test that captures it.
    """
    if not _is_own():
        yield
        return
    sys.stderr.flush()
    former = os.dup(STDERR)
    reading, writing = os.pipe()
    os.dup2(writing, STDERR)
    os.close(writing)
    drained = threading.Event()
    arguments = (reading, write or _writer(former), drained, level == "debug")
    # It goes on until the process ends, because Spark's JVM lives until then.
    threading.Thread(target=_copy, args=arguments, name="stderr", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.write(STDERR, b"\n" + _END)
        os.dup2(former, STDERR)
        drained.wait(DRAIN_TIMEOUT_S)


def _is_own() -> bool:
    try:
        return sys.stderr.fileno() == STDERR
    except (OSError, ValueError, AttributeError):
        return False


def _writer(descriptor: int) -> Callable[[bytes], object]:
    def write(line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(descriptor, left) :]

    return write


def _copy(reading: int, write: Callable[[bytes], object], drained: threading.Event, debug: bool) -> None:
    """Copy lines until the last writer has closed the pipe. A line that is too long is cut into several."""
    rest = b""
    # If the reader of the log has gone, the lines are dropped, so that no writer waits for the pipe.
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while chunk := pipe.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], b""
            for line in lines:
                if line == _END[:-1]:
                    drained.set()
                else:
                    _pass_on(line, write, debug)
        _pass_on(rest, write, debug)


def _pass_on(line: bytes, write: Callable[[bytes], object], debug: bool) -> None:
    if line.strip() and (debug or not line.startswith(_EXPECTED)):
        with contextlib.suppress(OSError):
            write(json_line(line) + b"\n")


def json_line(line: bytes) -> bytes:
    """Return a line as it is if it is a JSON object, and otherwise as the event of one."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        return line
    text = masked(line.decode(errors="backslashreplace").rstrip("\r"))
    said = {
        "event": text,
        "level": "debug" if line.startswith(_EXPECTED) else "warning",
        "source": "stderr",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    return msgspec.json.encode(said)
