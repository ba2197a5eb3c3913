"""The settings of a replica's log: the topic's own, or else the cluster's, or else the broker's."""

from brokers.mock.log.log import LogConfig
from brokers.mock.metadata import Metadata
from brokers.mock.settings import Settings


class TopicSettings:
    """The present settings of topics."""

    def __init__(self, metadata: Metadata, settings: Settings) -> None:
        self._metadata = metadata
        self._settings = settings

    def log_config(self, topic: str) -> LogConfig:
        """Return the settings of a log of the topic, sizes in bytes."""
        return LogConfig(
            segment_bytes=self._number(topic, "segment.bytes", self._settings.log_segment_bytes),
            max_message_bytes=self._number(topic, "max.message.bytes", self._settings.message_max_bytes),
        )

    def min_insync_replicas(self, topic: str) -> int:
        """Return how many replicas must be in sync for acks=all."""
        return self._number(topic, "min.insync.replicas", self._settings.min_insync_replicas)

    def _number(self, topic: str, name: str, default: int) -> int:
        text = self._metadata.topic_setting(topic, name)
        return int(text) if text is not None and text.isascii() and text.isdecimal() else default
