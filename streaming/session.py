"""The Spark session of the job."""

import contextlib
import functools
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from conf import LOG4J2
from conf.class_archive import ClassArchive
from conf.jars import jars, missing
from conf.java import java_home
from conf.layers import SettingsError
from conf.python import keep_paths_safe
from conf.settings import Settings
from conf.spark_settings import MASTER, MASTER_EXPECTED, is_local, is_master, is_secret
from isrflow.bus_url import kind_of
from streaming.forking.service import ForkServer
from streaming.pandas_warning import ignore_pandas_warning
from streaming.query_failure import without_stacks
from streaming.sources.interface import module_of
from streaming.spark_conf import DRIVER_CLASS_PATH, LOCAL_FILES_CLASS, default_master, query_conf

# What Spark raises itself, and what the bridge to its JVM raises, for example when the JVM is gone.
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
LOCAL_FILES = "spark-files"
# The master that spark-submit takes if none is named.
_UNTOLD = "local[*]"
_REASON_LINES_MAX = 3
_starting_jvm = threading.Event()
_server: ForkServer | None = None


def reason_of(error: BaseException) -> str:
    """Return one to three lines of an error of Spark's, without its stacks."""
    said = [line.strip() for line in without_stacks(str(error)).splitlines() if line.strip()]
    reason = " ".join(said[:_REASON_LINES_MAX]) or type(error).__name__
    # "Connection refused" alone does not say by whom.
    is_of_bridge = isinstance(error, ConnectionError | Py4JNetworkError)
    return f"its JVM is gone or does not answer: {reason}" if is_of_bridge else reason


def choose_java() -> None:
    """Choose the Java for Spark. Raises ``conf.java.JavaError`` if there is none."""
    os.environ["JAVA_HOME"] = str(java_home())


def class_archive() -> ClassArchive:
    """Return the archive of Spark's classes for the chosen Java, written or not (``streaming/class_archive.py``)."""
    directory = Path(sys.prefix) / "share" / "isrflow"
    return ClassArchive(directory, f"spark-{pyspark.__version__}", Path(os.environ["JAVA_HOME"]))


def own_jars() -> list[Path]:
    """Return the jars that stand before Spark's own on the class path, which the archive of classes depends on."""
    return [] if missing(LOCAL_FILES) else jars(LOCAL_FILES)


def end_session(session: SparkSession, timeout_s: float) -> None:
    """Stop ``session`` and wait for its JVM to end. Raises ``subprocess.TimeoutExpired``."""
    gateway = SparkContext._gateway
    session.stop()
    assert gateway is not None, "a session that runs has a gateway"
    gateway.shutdown()
    # The JVM ends when its standard input does.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout_s)
    SparkContext._gateway = SparkContext._jvm = None
    if _server is not None and _server.is_usable:
        _server.stop()


def launch(settings: Settings, local_dir: Path, stacks: Path | None = None, temp_dir: Path | None = None) -> str:
    """Launch Spark's JVM, if this process has none yet, and return the master on which the query will run.

    That is ``spark.master``; if it is not set, the master of a context that runs, or that Spark was told by
    spark-submit or spark-defaults.conf; otherwise ``default_master``. Spark logs the stacks of a failed query to the
    file ``stacks``, or to standard error if there is none. Java's temporary files are in ``temp_dir``, or in
    ``local_dir`` if there is none. Call ``choose_java`` first. Raises ``SettingsError``, or one of ``SPARK_ERRORS``.
    """
    keep_paths_safe()
    ignore_pandas_warning()
    conf = SparkConf(loadDefaults=False).setAll(list(_launch_conf(settings, stacks, temp_dir or local_dir).items()))
    with jvm_leaves_sigterm(), _environment(_jvm_environment(settings, local_dir)), _temporary_files_in(local_dir):
        SparkContext._ensure_initialized(conf=conf)
    running = SparkContext._active_spark_context
    told = str(running.master) if running else _told().get(MASTER, _UNTOLD)
    master = settings.spark.get(MASTER) or (default_master(settings) if told == _UNTOLD else told)
    if not is_master(master):
        raise SettingsError(f"{MASTER} is {master!r}: expected {MASTER_EXPECTED}")
    return master


def _jvm_environment(settings: Settings, local_dir: Path) -> dict[str, str]:
    """Return what the JVM's environment says about Python. On this machine that starts the fork server.

    On a cluster Spark runs the operator's set-up on this machine, in the Python that the user names, without what was
    shipped to executors. So that Python finds isrflow's modules by its path.
    """
    if is_local(settings.spark.get(MASTER, "local")):
        # The server imports modules while the JVM starts.
        python = str(_fork_server(local_dir, settings.bus).python)
        return {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    root = str(Path(__file__).resolve().parents[1])
    return {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


@contextlib.contextmanager
def _temporary_files_in(directory: Path) -> Iterator[None]:
    """Make temporary files of this process in ``directory`` for the block, so that a kill leaves none elsewhere."""
    before, tempfile.tempdir = tempfile.tempdir, str(directory)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def build_session(
    settings: Settings, local_dir: Path, stacks: Path | None = None, socket_dir: Path | None = None
) -> SparkSession:
    """Start Spark, configured for short micro-batches with durable, checked state.

    ``local_dir`` is for the files that Spark needs on this machine only while it runs, and ``socket_dir`` for its
    sockets (``query_conf``) and Java's temporary files. ``launch`` describes ``stacks``, and what is raised.
    """
    master = launch(settings, local_dir, stacks, socket_dir)
    has_local_files = _is_loadable(LOCAL_FILES_CLASS)
    conf = query_conf(settings, master, local_dir, _told(), has_local_files=has_local_files, socket_dir=socket_dir)
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    with _environment({"PYSPARK_PYTHON": _python(master, conf)}):
        session = builder.getOrCreate()
    if _server is not None:
        _server.wait_ready()
    return session


def _fork_server(local_dir: Path, bus: str) -> ForkServer:
    """Return this process's server: the running JVM knows the path of its launcher.

    A new one imports the source of ``bus``, a URL.
    """
    global _server
    if _server is None or not _server.is_usable:
        _server = ForkServer(local_dir, [module_of(kind_of(bus).name)])
    return _server


def _python(master: str, conf: Mapping[str, str]) -> str:
    """Return the Python that runs tasks. On a cluster the user names it."""
    if is_local(master):
        return str(_server.python) if _server is not None and _server.is_usable else sys.executable
    return conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable


def _launch_conf(settings: Settings, stacks: Path | None, temp_dir: Path) -> dict[str, str]:
    """Return what a JVM reads when it is launched, and what spark-submit would decide otherwise.

    These are on the JVM's command line, which all users of the machine can read. Secrets reach Spark with the session.
    """
    ours = [str(jar) for jar in own_jars()]
    given = settings.spark.get(DRIVER_CLASS_PATH)
    return {
        **{key: value for key, value in settings.spark.items() if not is_secret(key)},
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": java_options(settings, stacks, temp_dir),
        "spark.ui.showConsoleProgress": settings.spark.get("spark.ui.showConsoleProgress", "false"),
        DRIVER_CLASS_PATH: os.pathsep.join([*ours, *([given] if given else [])]),
    }


def _told() -> dict[str, str]:
    """Return the settings that Spark's JVM was launched with."""
    return dict(SparkConf(_jvm=SparkContext._jvm).getAll())


def _is_loadable(name: str) -> bool:
    jvm: Any = SparkContext._jvm
    return bool(jvm.org.apache.spark.util.Utils.classIsLoadable(name))


@contextlib.contextmanager
def jvm_leaves_sigterm() -> Iterator[None]:
    """Make a JVM that starts in the block ignore SIGTERM, while this process still handles it.

    A user may signal the job's whole process group, which would end the JVM while the job still needs it. A JVM that
    starts with SIGTERM ignored keeps ignoring it, and ends with this process.
    """
    _prepare_children()
    _starting_jvm.set()
    try:
        yield
    finally:
        _starting_jvm.clear()


@functools.cache
def _prepare_children() -> None:
    """Make each forked child check whether to ignore SIGTERM. Fork hooks cannot be unregistered."""

    def ignore() -> None:
        if _starting_jvm.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    os.register_at_fork(after_in_child=ignore)


def java_options(settings: Settings, stacks: Path | None, temp_dir: Path) -> str:
    # A killed JVM leaves a library and some directories of Spark's there, which the next job removes with ``temp_dir``.
    temp = f'"-Djava.io.tmpdir={temp_dir}" '
    to_file = f'"-Disrflow.stacks.file={stacks}" -Disrflow.stacks=file ' if stacks else ""
    shared = "".join(f'"{option}" ' for option in class_archive().options)
    return f"-Dlog4j2.configurationFile={LOG4J2.as_uri()} {temp}{to_file}{shared}{settings.driver_java_options}"
