"""The settings of a topic: its own, or else the cluster's, or else the broker's."""

from brokers.mock.log.log import LogConfig
from brokers.mock.metadata import Metadata
from brokers.mock.settings import Settings
from state.setting_text import whole_number

# In Kafka all settings that are read here are 32-bit integers.
_NUMBER_MAX = 2**31 - 1


class TopicSettings:
    """The present settings of topics."""

    def __init__(self, metadata: Metadata, settings: Settings) -> None:
        self._metadata = metadata
        self._settings = settings

    def log_config(self, topic: str) -> LogConfig:
        """Return the settings of the topic's logs."""
        ours = self._settings
        return LogConfig(
            segment_bytes=self._number(topic, "segment.bytes", "log.segment.bytes", ours.log_segment_bytes),
            max_message_bytes=self._number(topic, "max.message.bytes", "message.max.bytes", ours.message_max_bytes),
        )

    def min_insync_replicas(self, topic: str) -> int:
        """Return how many replicas must be in sync for acks=all."""
        name = "min.insync.replicas"
        return self._number(topic, name, name, self._settings.min_insync_replicas)

    def _number(self, topic: str, name: str, of_brokers: str, default: int) -> int:
        text = self._metadata.topic_setting(topic, name, of_brokers)
        # The engine takes values that no broker can use.
        number = None if text is None else whole_number(text)
        return default if number is None or not 0 <= number <= _NUMBER_MAX else number
