"""The gateway refuses the same topic settings and values as Kafka's own code."""

import subprocess
from pathlib import Path

import pytest

from brokers.gateways.kraft.topic_settings import NAMES, complaint_about
from conf.jars import fetch
from conf.java import java_home

pytestmark = pytest.mark.cluster
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
    *("*", " * ", "*,*", "0:1", "0:1,1:2", "0:1, 1:2", "0:1,", "0:x", ":", "0", "a:b"),
]


def test_the_gateway_accepts_the_same_topic_settings_as_kafka() -> None:
    pairs = [(name, value) for name in (*NAMES, "no.such.setting") for value in VALUES]
    command = [str(java_home() / "bin" / "java"), "-cp", ":".join(map(str, fetch("kafka-broker"))), str(SOURCE)]
    lines = "".join(f"{name}={value}\n" for name, value in pairs)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=True)
    names, *verdicts = done.stdout.splitlines()
    assert set(names.split()) == set(NAMES)
    ours = ["taken" if complaint_about(name, value) is None else "refused" for name, value in pairs]
    assert len(verdicts) == len(pairs)
    differ = [(pair, kafka) for pair, kafka, here in zip(pairs, verdicts, ours, strict=True) if kafka != here]
    assert differ == []
