"""Write the archive of the classes that Spark loads, which makes an engine start with a quarter less CPU time.

The archive lives in the Python environment whose Spark it was made from, and goes when that environment goes.
"""

from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from bus.interface import Entry
from conf.settings import Settings
from streaming.replay import replay
from streaming.session import choose_java, class_archive, end_session

DUMP_TIMEOUT_S = 300.0
_EVENTS = (
    b'{"kind":"broker_register","time_ms":1000,"broker":1,"incarnation":"a"}',
    b'{"kind":"broker_heartbeat","time_ms":1001,"broker":1,"broker_epoch":1}',
    b'{"kind":"create_topic","time_ms":1002,"topic":"orders","partitions":2,"replication_factor":1}',
    b'{"kind":"tick","time_ms":1500}',
)
EVENTS_PER_BATCH = 1


def write_class_archive() -> Path:
    """Run a short query, let its JVM write the classes that it loaded, and return the archive.

    Takes half a minute. Raises ``JavaError``, ``OSError``, ``RuntimeError`` where Spark does not run or writes none,
    and ``subprocess.TimeoutExpired`` where the JVM does not end.
    """
    choose_java()
    archive = class_archive()
    log = [Entry(seq, raw) for seq, raw in enumerate(_EVENTS, start=1)]
    with archive.written() as written:
        options = " ".join([Settings().driver_java_options, *(f'"{option}"' for option in written)])
        replay(log, msgspec.structs.replace(Settings(), driver_java_options=options), {}, EVENTS_PER_BATCH)
        session = SparkSession.getActiveSession()
        assert session is not None, "the query's session goes on"
        end_session(session, DUMP_TIMEOUT_S)
    assert archive.path is not None, "it was just written"
    return archive.path
