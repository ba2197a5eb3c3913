"""Our layouts against the schemas inside Kafka's released jars, version by version."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib.resources import files

import pytest

from brokers.gateways.kraft.messages import layouts
from brokers.gateways.kraft.metadata.registrations import change_version, register_version
from brokers.gateways.kraft.serving import APIS
from brokers.wire.layout import Versions, versions
from conf.jars import fetch
from conf.kafka_versions import KAFKA_VERSIONS
from state.features import METADATA_VERSIONS
from tests.support.schemas import Shape, ignorable, schemas_in, shape_of
from tests.support.waiting import TIMEOUT_S

# The last version that isrflow knows.
*_, NEWEST = KAFKA_VERSIONS
# How many newer versions of a message there are than a gateway claims. At the levels that are served it needs none.
LATER = {
    "ApiVersionsRequest": 1,
    "ApiVersionsResponse": 1,
}
# The messages that older releases lack, and that gateways do not send.
CAME_LATER = ("ClearElrRecord", "UnregisterControllerRequest", "UnregisterControllerResponse")
# The records that have more than one version among the levels of a log.
VERSIONS_BY_LEVEL = {"RegisterBrokerRecord": register_version, "BrokerRegistrationChangeRecord": change_version}
PACKAGES = (
    *("brokers.wire", "brokers.wire.configs", "brokers.wire.metadata", "brokers.wire.security"),
    *("brokers.gateways.shared", "brokers.gateways.kraft"),
)


@cache
def released(number: str) -> dict[str, Shape]:
    # Once, because it checks the hash of every jar.
    return schemas_in(fetch(KAFKA_VERSIONS[number].jars), number)


def ours(name: str) -> Shape:
    places = (files(package) / "layouts" / f"{name}.json" for package in PACKAGES)
    [text] = [place.read_text() for place in places if place.is_file()]
    read: Shape = json.loads(text)
    return read


@pytest.mark.parametrize("name", sorted(layouts()))
def test_a_layout_is_what_kafka_released(name: str) -> None:
    mine, theirs = ours(name), released(NEWEST)[name]
    assert {key: mine.get(key) for key in ("name", "type", "apiKey")} == {
        key: theirs.get(key) for key in ("name", "type", "apiKey")
    }
    claimed, valid = versions(mine["validVersions"]), versions(theirs["validVersions"])
    assert claimed != Versions(0, -1)
    assert claimed.low >= valid.low
    assert claimed.high == valid.high - LATER.get(name, 0), "the newest version is always claimed"
    for version in range(claimed.low, claimed.high + 1):
        assert shape_of(mine, version) == shape_of(theirs, version)
    told = ignorable(theirs["fields"])
    assert ignorable(mine["fields"]) == {field: told[field] for field in ignorable(mine["fields"])}


@pytest.mark.parametrize("number", [number for number in KAFKA_VERSIONS if number != NEWEST])
def test_every_led_version_reads_and_writes_a_message_alike(number: str) -> None:
    """So the gateway need not know which version a broker has."""
    others = released(number)
    for name, layout in layouts().items():
        if layout.kind in ("request", "response") and layout.api_key not in APIS:
            continue
        if name in CAME_LATER and name not in others:
            continue
        mine, theirs = ours(name), others[name]
        claimed, valid = versions(mine["validVersions"]), versions(theirs["validVersions"])
        assert valid.high >= claimed.low, name
        for version in range(max(claimed.low, valid.low), min(claimed.high, valid.high) + 1):
            assert shape_of(mine, version) == shape_of(theirs, version), (name, version)
        if mine["type"] == "metadata":
            level = METADATA_VERSIONS[KAFKA_VERSIONS[number].release]
            written = VERSIONS_BY_LEVEL[name](level) if name in VERSIONS_BY_LEVEL else claimed.high
            assert valid.high >= written, "a log is written in versions that each broker of its level reads"


def test_layouts_hold_no_texts() -> None:
    texts = [name for name in layouts() if re.search(r'"about"|//', json.dumps(ours(name)))]
    assert texts == []


def test_the_comparison_notices_a_difference() -> None:
    changed = json.loads(json.dumps(ours("PartitionRecord")))
    changed["fields"][-1]["tag"] = 9
    assert shape_of(changed, 1) == shape_of(released(NEWEST)["PartitionRecord"], 1)
    assert shape_of(changed, 2) != shape_of(released(NEWEST)["PartitionRecord"], 2)


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
        assert subprocess.run([sys.executable, "-c", READ_AT_ONCE], timeout=TIMEOUT_S).returncode == 0
