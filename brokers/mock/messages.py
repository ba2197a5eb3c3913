"""The messages between mock brokers and their clients, and among mock brokers, in the versions that they serve."""

from typing import NamedTuple

from brokers.wire.catalogue import Catalogue, Values

CATALOGUE = Catalogue("brokers.mock")

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
FIND_COORDINATOR, INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH = 10, 22, 23
# Stand for a time in ListOffsets (Kafka's ``ListOffsetsRequest``).
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


class Asked(NamedTuple):
    """A request before it is sent."""

    api_key: int
    version: int
    values: Values
