"""Lines that other programs write to this process's standard error, made into JSON.

Spark's JVM, its Python workers and Python's own warnings write plain text to the same place as the log, and a reader of
JSON could not parse it. So standard error becomes a pipe, and a thread copies each line to the original standard
error. A line that is a JSON object is copied unchanged. Any other line becomes the event of a JSON line, together with
the stack trace that follows it.
"""

import contextlib
import os
import re
import select
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
# How long a line waits for the stack trace that may follow it.
_TRACE_TIMEOUT_S = 0.2
_TRACEBACK = b"Traceback (most recent call last):"
_CHAINED = (b"During handling of the above exception", b"The above exception was the direct cause")
# How Java begins a trace, and each cause in it.
_THROWN = re.compile(rb"(?:Caused by: |Suppressed: )?(?:[a-z]\w*\.)+[\w$]*(?:Exception|Error|Failure|Throwable)\b")
_SPARK_ERROR = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+ (?:ERROR|FATAL) ")
# The reader of the log may be slow, or not read at all.
DRAIN_TIMEOUT_S = 5.0
# Comes after everything that was written before the end. Children may keep the pipe open for longer.
_END = b"\0end of the log\n"
_WORKER = b"Streaming TransformWithStateInPandas Python worker"
# What Spark logs at each good start. As warnings, these lines would hide real ones.
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

    Spark's expected lines are left out unless ``level`` is ``debug``. Nothing happens if Python's standard error is
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
    traces = _Traces(lambda text: _pass_on(text, write, debug))
    # If the reader of the log has gone, the lines are dropped, so that no writer waits for the pipe.
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            if not select.select([pipe], [], [], _TRACE_TIMEOUT_S)[0]:
                traces.flush()
                continue
            if not (chunk := pipe.read(_CHUNK_BYTES)):
                break
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], b""
            for line in lines:
                if line == _END[:-1]:
                    traces.flush()
                    drained.set()
                else:
                    traces.add(line)
        traces.add(rest)
        traces.flush()


class _Traces:
    """Lines, each with the stack trace that follows it. Empty lines are left out."""

    def __init__(self, pass_on: Callable[[bytes], None]) -> None:
        self._pass_on = pass_on
        self._held: list[bytes] = []
        self._bytes = 0

    def add(self, line: bytes) -> None:
        if not line.strip():
            return
        if not self._held or self._bytes + len(line) > LINE_BYTES_MAX or not self._is_of_trace(line):
            self.flush()
        self._held.append(line)
        self._bytes += len(line)

    def _is_of_trace(self, line: bytes) -> bool:
        first, before = self._held[0], self._held[-1]
        if first.startswith(b"{"):
            return False
        if line[:1].isspace() or line.startswith(_CHAINED) or _THROWN.match(line):
            return True
        if line.startswith(_TRACEBACK):
            return before.startswith(_CHAINED)
        # What was raised ends a traceback of Python's.
        return _TRACEBACK in self._held and before[:1].isspace()

    def flush(self) -> None:
        """Pass on the lines that wait."""
        if self._held:
            self._pass_on(b"\n".join(self._held))
            self._held, self._bytes = [], 0


def _pass_on(text: bytes, write: Callable[[bytes], object], debug: bool) -> None:
    if debug or not text.startswith(_EXPECTED):
        with contextlib.suppress(OSError):
            write(json_line(text) + b"\n")


def json_line(text: bytes) -> bytes:
    """Return a line as it is if it is a JSON object, and otherwise as the event of one.

    The lines after the first are its stack trace. If the text is only a trace, its last line is the event.
    """
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return text
    shown = masked(text.decode(errors="backslashreplace").rstrip("\r"))
    first, _, stack = shown.partition("\n")
    level = "debug" if text.startswith(_EXPECTED) else "error" if _SPARK_ERROR.match(text) else "warning"
    said = {
        "event": shown.rpartition("\n")[2] if text.startswith(_TRACEBACK) else first,
        "level": level,
        "source": "stderr",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    return msgspec.json.encode(said | ({"stack": stack} if stack else {}))
