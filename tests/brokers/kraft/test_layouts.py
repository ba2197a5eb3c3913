"""Our layouts against the schemas inside Kafka's released jars, version by version."""

import json
import re
import subprocess
import sys
from importlib.resources import files

import pytest

from brokers.gateways.kraft.messages import layouts
from brokers.wire.layout import Versions, versions
from conf.jars import KAFKA_VERSION, fetch
from tests.support.schemas import Shape, ignorable, schemas_in, shape_of


def released() -> dict[str, Shape]:
    return schemas_in(fetch("kafka-broker"), KAFKA_VERSION)


def ours(name: str) -> Shape:
    text = (files("brokers.gateways.kraft") / "layouts" / f"{name}.json").read_text()
    read: Shape = json.loads(text)
    return read


@pytest.mark.parametrize("name", sorted(layouts()))
def test_a_layout_is_what_kafka_released(name: str) -> None:
    mine, theirs = ours(name), released()[name]
    assert {key: mine.get(key) for key in ("name", "type", "apiKey")} == {
        key: theirs.get(key) for key in ("name", "type", "apiKey")
    }
    claimed, valid = versions(mine["validVersions"]), versions(theirs["validVersions"])
    assert claimed != Versions(0, -1)
    assert claimed.low >= valid.low
    assert claimed.high == valid.high, "the newest version is always claimed"
    for version in range(claimed.low, claimed.high + 1):
        assert shape_of(mine, version) == shape_of(theirs, version)
    assert ignorable(mine["fields"]) == ignorable(theirs["fields"])


def test_layouts_hold_no_texts() -> None:
    texts = [name for name in layouts() if re.search(r'"about"|//', json.dumps(ours(name)))]
    assert texts == []


def test_the_comparison_notices_a_difference() -> None:
    changed = json.loads(json.dumps(ours("PartitionRecord")))
    changed["fields"][-1]["tag"] = 9
    assert shape_of(changed, 1) == shape_of(released()["PartitionRecord"], 1)
    assert shape_of(changed, 2) != shape_of(released()["PartitionRecord"], 2)


READ_AT_ONCE = """
import sys, threading
from brokers.gateways.kraft.messages import layouts

sys.setswitchinterval(1e-6)
together = threading.Barrier(8)
threads = [threading.Thread(target=lambda: (together.wait(), layouts())) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_several_threads_may_read_the_layouts_first() -> None:
    """A gateway's threads do. One attempt in three used to end the process with a segmentation fault."""
    for _ in range(6):
        assert subprocess.run([sys.executable, "-c", READ_AT_ONCE], timeout=60).returncode == 0
