"""The parts of a broker that its APIs share, and how a request names a topic."""

from typing import NamedTuple

from brokers.mock.metadata import Metadata
from brokers.mock.replicas.table import Replicas
from brokers.mock.replicas.waiting import Purgatory
from brokers.mock.settings import Settings
from brokers.wire.errors import ErrorCode, RefusedError


class Context(NamedTuple):
    """The parts of one broker."""

    broker: int
    settings: Settings
    metadata: Metadata
    replicas: Replicas
    purgatory: Purgatory

    def topic_named(self, name: str, topic_id: str) -> str:
        """Return the name of the topic that a request means, by name or by id (KIP-516). Raises ``RefusedError``."""
        if name:
            return name
        found = self.metadata.topic_of(topic_id)
        if found is None:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_ID)
        return found
