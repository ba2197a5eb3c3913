"""The gateway refuses the same topic settings and values as Kafka's own code."""

from pathlib import Path

import pytest

from conf.kafka_versions import KAFKA_VERSIONS, KafkaVersion
from state.features import METADATA_VERSIONS
from state.topic_settings import complaint_about, known_in
from tests.real_kafka.kafkas_classes import run_java

pytestmark = pytest.mark.kraft
SOURCE = Path(__file__).with_name("TopicSettings.java")
VALUES = [
    *(
        "",
        " ",
        "-3",
        "-2",
        "-1",
        "0",
        "1",
        "3",
        "4",
        "9",
        "10",
        "17",
        "18",
        "22",
        "23",
        " 5 ",
        "+5",
        "--5",
        "5.0",
        "1_0",
    ),
    *("-131072", "-131073", "1048575", "1048576", "2147483647", "2147483648", "-2147483648", "-2147483649"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "0x10", "abc"),
    *("0.5", "1.0", "1.5", "-0.1", ".5", "1e-1", "0.5f", "true", "TRUE", " false ", "yes", "null"),
    *("compact", "delete,compact", " compact , delete ", "compact,", "compact,other", "COMPACT", "compact,compact"),
    *("uncompressed", "gzip", "zstd", " zstd", "none", "producer", "CreateTime", "createtime", "LogAppendTime"),
    *("13", "14", "0.8", "0.8.0", "0.10.0", "0.10.0.1", "0.10.0-IV1", "0.10.0-IV2", "0.11.0", "1.0-IV0", "1.1-IV1"),
    *(
        "2.8",
        "2.8-IV1",
        "2.8-IV2",
        " 3.0 ",
        "3.0.",
        "3..0",
        "3.7-IV4",
        "3.7-IV5",
        "3.9.1",
        "3.9-IV0.1",
        "4.0",
        "4.0-IV1",
    ),
    *("*", " * ", "*,*", "0:1", "0:1,1:2", "0:1, 1:2", "0:1,", "0:x", ":", "0", "a:b"),
]
# The settings that no topic gets. A fix release may have some that the first version of its release lacks, and a broker
# does not tell which of them it is.
REFUSED = {"4.2": {"max.decompressed.message.bytes"}}


@pytest.mark.parametrize("kafka", KAFKA_VERSIONS.values(), ids=KAFKA_VERSIONS)
def test_the_gateway_accepts_the_same_topic_settings_as_kafka(kafka: KafkaVersion) -> None:
    level = METADATA_VERSIONS[kafka.release]
    known = known_in(level)
    every = dict.fromkeys(name for each in METADATA_VERSIONS.values() for name in known_in(each))
    pairs = [(name, value) for name in (*every, "no.such.setting") for value in VALUES]
    told = run_java(SOURCE, lines=(f"{name}={value}" for name, value in pairs), kafka=kafka)
    names, *verdicts = told.splitlines()
    refused = REFUSED.get(kafka.release, set())
    assert set(names.split()) == set(known) | refused
    verdicts = ["refused" if name in refused else verdict for (name, _), verdict in zip(pairs, verdicts, strict=True)]
    ours = ["taken" if complaint_about(name, value, level) is None else "refused" for name, value in pairs]
    differ = [(pair, there) for pair, there, here in zip(pairs, verdicts, ours, strict=True) if there != here]
    assert differ == []
