"""The settings of logs, as a mock broker reads them from what was decided."""

import pytest

from brokers.mock.metadata import Metadata
from brokers.mock.replicas.topic_settings import TopicSettings
from brokers.mock.settings import settings_of
from state.decisions import ConfigDecision, TopicDecision
from state.reason import Reason

SAID = {"seq": 1, "controller_epoch": 1, "time_ms": 0, "reason": Reason.TOPIC_CREATED}
DEFAULT = 4


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), (" 2", 2), ("+02\n", 2), ("2147483647", 2**31 - 1), ("2147483648", DEFAULT), ("9" * 5_000, DEFAULT)]
    + [(text, DEFAULT) for text in ("", "-1", "1.5", "²", "one")],
)
def test_a_setting_that_is_no_number_of_kafka_s_counts_as_not_set(text: str, number: int) -> None:
    metadata = Metadata()
    metadata.apply(TopicDecision(**SAID, topic="t", topic_id="id", state="created", config={}))
    names = ("min.insync.replicas", "segment.bytes", "max.message.bytes")
    metadata.apply(ConfigDecision(**SAID, entity="topic", name="t", config=dict.fromkeys(names, text)))
    defaults = {"min.insync.replicas": DEFAULT, "log.segment.bytes": DEFAULT, "message.max.bytes": DEFAULT}
    topics = TopicSettings(metadata, settings_of(defaults))
    config = topics.log_config("t")
    assert [topics.min_insync_replicas("t"), config.segment_bytes, config.max_message_bytes] == [number] * 3


def test_what_all_brokers_have_counts_under_kafka_s_names_for_brokers() -> None:
    metadata = Metadata()
    topics = TopicSettings(metadata, settings_of({}))
    names = {"message.max.bytes": "1000", "log.segment.bytes": "2000", "min.insync.replicas": "2"}
    metadata.apply(ConfigDecision(**SAID, entity="cluster", name=None, config=names))
    config = topics.log_config("t")
    assert (config.max_message_bytes, config.segment_bytes, topics.min_insync_replicas("t")) == (1_000, 2_000, 2)
    own = {"max.message.bytes": "3000", "segment.bytes": "4000", "min.insync.replicas": "3"}
    metadata.apply(TopicDecision(**SAID, topic="t", topic_id="id", state="created", config=own))
    config = topics.log_config("t")
    assert (config.max_message_bytes, config.segment_bytes, topics.min_insync_replicas("t")) == (3_000, 4_000, 3)
