"""The reader that Spark makes of a bus on Kafka, as the options of a query make it."""

from pathlib import Path

from bus.kafka.bus import KafkaBus
from streaming.sources.kafka import KafkaReader
from tests.support.operators import keys_of_one_partition


def reader_of(bus: KafkaBus, spool_dir: Path, **options: object) -> KafkaReader:
    """Return the reader of a job that has claimed nothing and starts from the first event."""
    given = {
        "url": bus.address,
        "keys": keys_of_one_partition(1).option,
        "max_events": 100,
        "max_bytes": 100_000,
        "after": 0,
        "defer": "false",
        "spool_dir": spool_dir,
        "claim_seq": 0,
        "claim_note_file": "",
        "layouts": 0,
        "quiet_ms": 0,
    }
    return KafkaReader({name: str(value) for name, value in (given | options).items()})
