"""Ids, and where a topic is kept: what is computed from a name never changes."""

import pytest

from state.ids import BROKER_ID_MAX, UUID_BYTES, as_uuid, broker_named, is_topic_id, page_of, shard_of, uuid_in
from state.topic_name import NAME_LENGTH_MAX, complaint_about_topic_name, has_length_of_a_topic


@pytest.mark.parametrize(
    ("topic", "shard", "page"), [("orders", 14, 6), ("my.topic", 15, 5), ("my_topic", 15, 5), ("naïve", 6, 6)]
)
def test_a_topic_stays_on_its_shard_and_page(topic: str, shard: int, page: int) -> None:
    assert (shard_of(topic, 16), page_of(topic, 16, 8)) == (shard, page)


@pytest.mark.parametrize(
    ("name", "broker"),
    [
        ("0", 0),
        ("007", 7),
        ("0" * 5_000 + "7", 7),
        (str(BROKER_ID_MAX), BROKER_ID_MAX),
        (str(BROKER_ID_MAX + 1), None),
        ("9" * 5_000, None),
        ("-1", None),
        ("\u0661", None),
        ("\u00b2", None),
        ("", None),
    ],
)
def test_a_broker_is_named_by_its_id(name: str, broker: int | None) -> None:
    assert broker_named(name) == broker


@pytest.mark.parametrize("length", [0, 1, NAME_LENGTH_MAX, NAME_LENGTH_MAX + 1])
def test_a_topics_name_has_a_length(length: int) -> None:
    assert has_length_of_a_topic("x" * length) == (complaint_about_topic_name("x" * length) is None)
    assert has_length_of_a_topic("x" * length) == (1 <= length <= 249)


def test_an_id_is_read_only_as_kafka_writes_it() -> None:
    data = bytes(range(UUID_BYTES))
    text = as_uuid(data)
    assert uuid_in(text) == data
    # The last character has bits to spare.
    others = [text[:-1] + chr(ord(text[-1]) + 1), text[:-1], text + "A", f"{text}==", "!" * 22, "é" * 22, ""]
    assert [uuid_in(other) for other in others] == [None] * len(others)


@pytest.mark.parametrize(("number", "may"), [(0, False), (1, False), (2, True), (2**128 - 1, True)])
def test_a_topic_has_no_id_that_kafka_reserves(number: int, may: bool) -> None:
    assert is_topic_id(as_uuid(number.to_bytes(UUID_BYTES))) == may
    assert not is_topic_id("none")
