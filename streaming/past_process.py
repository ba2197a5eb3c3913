"""The past for the live page, read by another process, so that batches do not wait for it."""

import contextlib
import subprocess
import threading

import msgspec

from conf.python import PYTHON
from sinks.web.past import PastError

ANSWER_TIMEOUT_S = 20.0
# An answer is one view of the cluster or one explanation, so a longer one is a fault.
ANSWER_BYTES_MAX = 16 * 1024 * 1024


class PastProcess:
    """A process that reads the bus at ``url``. It is started by the first question, and again if it has ended."""

    def __init__(self, url: str, command: tuple[str, ...] = (*PYTHON, "-m", "streaming.past_worker")) -> None:
        self._command = [*command, url]
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def explain(self, topic: str, partition: int, seq: int | None = None) -> bytes:
        return self._ask({"topic": topic, "partition": partition, "seq": seq})

    def topic(self, topic: str, seq: int | None = None) -> bytes:
        return self._ask({"topic": topic, "seq": seq})

    def at(self, time_ms: int) -> bytes:
        return self._ask({"time_ms": time_ms})

    def _ask(self, question: dict[str, object]) -> bytes:
        with self._lock:
            if self._is_closed:
                raise PastError("the engine stops")
            process = self._running()
            late = threading.Timer(ANSWER_TIMEOUT_S, process.kill)
            late.start()
            try:
                line = _asked(process, msgspec.json.encode(question))
            finally:
                late.cancel()
            if not line.endswith(b"\n"):
                self._end()
                raise PastError(f"the log could not be read, or reading it took longer than {ANSWER_TIMEOUT_S:.0f} s")
        if line[:1] == b"-":
            raise PastError(msgspec.json.decode(line[1:], type=str))
        return line[1:-1]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """End the process."""
        self._is_closed = True
        # A question that is being answered ends with the process.
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.kill()
        with self._lock:
            self._end()


def _asked(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    """Send a question, and return the answer's line, or a part of it if the process ends first."""
    if process.stdin is None or process.stdout is None:
        return b""
    try:
        process.stdin.write(question + b"\n")
        process.stdin.flush()
        return process.stdout.readline(ANSWER_BYTES_MAX)
    except OSError:
        return b""
