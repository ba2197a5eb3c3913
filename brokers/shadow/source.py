"""What a reader of a metadata log hands on, whether it reads files or asks a controller.

A reader yields a snapshot first if the log no longer reaches back to its beginning. Batches follow in the order of
their offsets. A snapshot that comes later replaces everything that was known, because batches before it were missed.
"""

from typing import NamedTuple

from brokers.wire.metadata.record_frame import Record

# The name of a record whose kind or version is not known. Its values are ``ApiKey`` and ``Bytes``, how many it has.
UNKNOWN_RECORD = "UnknownRecord"


class Batch(NamedTuple):
    """One batch of records."""

    base_offset: int
    # Of the quorum's leader that wrote it.
    epoch: int
    time_ms: int
    is_control: bool
    # The offset of ``records[i]`` is ``base_offset + i``.
    records: tuple[Record, ...]
    # In bytes, as it stands in the log.
    size: int = 0

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        return self.base_offset + len(self.records)


class Snapshot(NamedTuple):
    """Everything that the log says before an offset."""

    # The first offset that it does not cover.
    offset: int
    # Of the last record that it covers.
    epoch: int
    # The time of the last batch that it covers.
    time_ms: int
    # Without the snapshot's own control records.
    records: tuple[Record, ...]


class Gap(NamedTuple):
    """The records from one offset up to another are not there any more, or cannot be read."""

    start: int
    end: int
    why: str


class Damage(NamedTuple):
    """Bytes that are no part of a log. A gap follows if records were lost."""

    # The offset that was expected there.
    offset: int
    what: str


Read = Batch | Snapshot | Gap | Damage
