"""Settings under Spark's own names, ``spark.…``: where Spark runs, and what is passed to it unchanged."""

import re

PREFIX = "spark."
MASTER = "spark.master"
MASTER_EXPECTED = "local, local[N] or spark://host:port[,host:port]"
_LOCAL = re.compile(r"local(\[([1-9][0-9]{0,3}|\*)(,[1-9][0-9]{0,3})?\])?\Z")
SERVER = r"[A-Za-z0-9._\[\]:-]+:[0-9]{1,5}"
_STANDALONE = re.compile(rf"spark://{SERVER}(,{SERVER})*\Z")
_KEY = re.compile(r"spark\.[A-Za-z0-9_.-]{1,200}\Z")
_VALUE_CHARS_MAX = 64 * 1024
_SECRET = r"secret|passw|passphrase|token|(?:access|account|encryption|private)[._-]?key"
_SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
# A word of Java's options. It may have quotes in any place, and blanks within them.
_WORD = re.compile(r"""(?:'[^']*'?|"(?:\\.|[^"\\])*"?|\\.|[^ \t'"\\])+""", re.DOTALL)

STATE_STORE = "spark.sql.streaming.stateStore"
_BY_CHECKPOINT = "the checkpoint's format and its checks depend on it"
# The settings that only the engine sets, and for each the reason or what to set instead.
FIXED = {
    "spark.driver.memory": "set driver.memory",
    "spark.driver.extraJavaOptions": "set driver.java.options",
    "spark.sql.shuffle.partitions": "set shuffle.partitions",
    "spark.local.dir": "it is beside the checkpoint; for executors set SPARK_LOCAL_DIRS of their workers",
    "spark.sql.warehouse.dir": "it is in spark.local.dir",
    "spark.submit.deployMode": "the engine itself is the driver",
    "spark.remote": "the engine itself is the driver",
    "spark.api.mode": "the engine itself is the driver",
    "spark.sql.session.timeZone": "times on the bus are in UTC",
    "spark.sql.adaptive.enabled": "a shard stays on the partition of its key",
    "spark.speculation": "two copies of a task would write the same files",
    "spark.sql.streaming.noDataMicroBatches.enabled": "a batch without events decides nothing",
    "spark.sql.streaming.minBatchesToRetain": "the job compares the newest batches with the bus",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": _BY_CHECKPOINT,
    f"{STATE_STORE}.providerClass": _BY_CHECKPOINT,
    f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": _BY_CHECKPOINT,
    f"{STATE_STORE}.checkpointFormatVersion": _BY_CHECKPOINT,
    f"{STATE_STORE}.rowChecksum.enabled": _BY_CHECKPOINT,
}
# A JVM reads these at its launch. If spark-submit launched it, the values given to spark-submit are in force.
OF_THE_LAUNCH = frozenset({"spark.driver.memory", "spark.driver.extraJavaOptions", "spark.submit.deployMode"})


def is_local(master: str) -> bool:
    """Return whether ``master`` runs all tasks in the driver's own process."""
    return _LOCAL.match(master) is not None


def is_master(master: str) -> bool:
    """Return whether the engine runs on a master of this kind."""
    return is_local(master) or _STANDALONE.match(master) is not None


def complaint_about(key: str, value: str) -> str | None:
    """Return why ``key`` cannot be given to Spark with ``value``; None if it can."""
    if not _KEY.match(key):
        return "it is not the name of a Spark setting"
    if key in FIXED:
        return f"the engine sets it itself: {FIXED[key]}"
    if key == MASTER and value and not is_master(value):
        return f"expected {MASTER_EXPECTED}, got {value!r}"
    if len(value) > _VALUE_CHARS_MAX or "\n" in value or "\0" in value:
        return f"expected one line of at most {_VALUE_CHARS_MAX} characters"
    return None


def is_secret(key: str) -> bool:
    """Return whether a setting is secret by its name. Spark judges by the name too."""
    return _SECRET_NAME.search(key) is not None


def shown(key: str, value: str) -> str:
    """Return the value of a setting as a log may show it, with ``***`` for what is secret by its name."""
    return "***" if is_secret(key) else _WORD.sub(_without_secret, value)


def _without_secret(word: re.Match[str]) -> str:
    """Return a word without its value if it is like ``-Djavax.net.ssl.keyStorePassword=…``."""
    name, equals, _ = word[0].partition("=")
    if not equals or "-D" not in name or not is_secret(name):
        return word[0]
    quote = name[0] if name[0] in ("'", '"') else ""
    return f"{name}=***{quote}"
