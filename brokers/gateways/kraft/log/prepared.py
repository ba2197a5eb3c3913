"""Decisions on their way into the metadata log: first prepared, then written."""

from collections.abc import Sequence
from typing import NamedTuple

from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.segment import Segment, Unit
from brokers.gateways.kraft.log.snapshots import SnapshotId
from brokers.gateways.kraft.metadata.image import MetadataImage
from state.decisions import AnyDecision


class Event(NamedTuple):
    """The decisions on one event, without those that only the log needs."""

    seq: int
    decisions: Sequence[AnyDecision]


class Prepared(NamedTuple):
    """Some events, their records, and the image and place after them."""

    events: Sequence[Event]
    units: Sequence[Unit]
    image: MetadataImage
    seq: int
    time_ms: int
    # Where the log ends with these records, and the last event that is noted there.
    end_offset: int
    noted_seq: int

    @property
    def size(self) -> int:
        """The size of the records in bytes."""
        return sum(len(unit.data) for unit in self.units)


class Written(NamedTuple):
    """The result of ``write``, for ``add`` to make readable."""

    last: Prepared
    ends: Sequence[End]
    # A snapshot that was finished meanwhile.
    snapshot: SnapshotId | None
    # The segment in which the log continues.
    segment: Segment | None
