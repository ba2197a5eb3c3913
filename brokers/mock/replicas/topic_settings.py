"""What a replica is told by settings: its topic's own, else the cluster's, else its broker's."""

from brokers.mock.log.log import LogConfig
from brokers.mock.metadata import Metadata
from brokers.mock.settings import Settings


class TopicSettings:
    """Look settings up as they stand now."""

    def __init__(self, metadata: Metadata, settings: Settings) -> None:
        self._metadata = metadata
        self._settings = settings

    def log_config(self, topic: str) -> LogConfig:
        """Give what a log of the topic is told, sizes in bytes."""
        return LogConfig(
            segment_bytes=self._number(topic, "segment.bytes", self._settings.log_segment_bytes),
            max_message_bytes=self._number(topic, "max.message.bytes", self._settings.message_max_bytes),
        )

    def min_insync_replicas(self, topic: str) -> int:
        """Return how many must be in sync for acks=all."""
        return self._number(topic, "min.insync.replicas", self._settings.min_insync_replicas)

    def _number(self, topic: str, name: str, default: int) -> int:
        text = self._metadata.topic_setting(topic, name)
        return int(text) if text is not None and text.isascii() and text.isdecimal() else default
