"""Find the cause of a failed query in its error text, as one line."""

import re

from bus.interface import BusError, DamagedError, FencedError, NoBusError

CAUSE_CHARS_MAX = 400
PY4J_ERROR = "py4j.protocol.Py4JJavaError"
_PLAN = "\n=== Streaming Query ==="
_NAMED = re.compile(r"(?:Caused by: |: )?(?P<kind>[A-Za-z0-9_.\x24]+(?:Error|Exception|Failure)): (?P<said>\S.*)\Z")
# These wrap another error, which follows them.
_WRAPPING = (
    "Traceback (most recent call last):",
    "Exception thrown in awaitResult",
    "An error occurred while calling",
    PY4J_ERROR,
)
_OF_STACK = re.compile(r"[ \t]+(?:at |\.\.\. [0-9]+ more)")
_PROXY = "An exception was raised by the Python Proxy"
# TrimmedError is not among them, because a new query starts after the events that retention has removed.
_BUS_ERRORS = (BusError, NoBusError, DamagedError, FencedError)
# Their names as a traceback shows them, taken from the classes, so that the pattern follows a class that moves.
_BUS_ERROR_NAMES = "|".join(re.escape(f"{kind.__module__}.{kind.__qualname__}") for kind in _BUS_ERRORS)
_OF_BUS = re.compile(rf"(?:{_BUS_ERROR_NAMES}): (?P<said>\S.*)")
# A new checkpoint would fail the same way.
_LACKING = {
    "No space left on device": "the disk is full, and there is no room for the checkpoint",
    "Disk quota exceeded": "the disk is full, and there is no room for the checkpoint",
    "Read-only file system": "the checkpoint cannot be written",
    "Too many open files": "the process may open no more files",
    "OutOfMemoryError": "Spark's memory does not suffice: raise driver.memory, or spark.executor.memory on a cluster",
}


def cause_in(text: str) -> str:
    """Return the innermost error in what Spark or a Python worker reported, without stacks and plans."""
    message = text.partition(_PLAN)[0]
    lines = [line.rstrip() for line in message.splitlines() if line.strip()]
    named = [found for line in lines if (found := _NAMED.match(line)) and not _wraps(found["said"])]
    if named:
        cause = f"{named[-1]['kind'].rpartition('.')[2]}: {named[-1]['said']}"
    else:
        cause = lines[0].strip() if lines else "it ended without an error"
    return cause if len(cause) <= CAUSE_CHARS_MAX else f"{cause[:CAUSE_CHARS_MAX]}…"


def without_stacks(text: str) -> str:
    """Return an error's text without the lines of Java's stacks."""
    return "\n".join(line for line in text.splitlines() if not _OF_STACK.match(line))


def _wraps(said: str) -> bool:
    return said.endswith(_WRAPPING[0]) or said.startswith((*_WRAPPING, _PROXY))


def bus_error_in(text: str) -> str | None:
    """Return the bus's error if a worker of the source could not read the bus; None otherwise."""
    found = _OF_BUS.search(text)
    return found["said"].strip() if found else None


def lack_in(text: str) -> str | None:
    """Return what the machine lacks, if that is why the query failed."""
    return next((message for sign, message in _LACKING.items() if sign in text), None)
