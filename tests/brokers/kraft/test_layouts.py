"""Our layouts against the schemas inside Kafka's released jars, version by version."""

import json
import re
import subprocess
import sys
import zipfile
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from brokers.gateways.kraft.messages import layouts
from brokers.wire.layout import Versions, versions
from conf.jars import KAFKA_VERSION, fetch

JARS_WITH_SCHEMAS = ("kafka-clients", "kafka-metadata")
Shape = dict[str, Any]


@cache
def released() -> dict[str, Shape]:
    """Read every schema that the jars carry, by its message's name."""
    found: dict[str, Shape] = {}
    for path in fetch("kafka-broker"):
        if path.name.removesuffix(f"-{KAFKA_VERSION}.jar") in JARS_WITH_SCHEMAS:
            with zipfile.ZipFile(path) as jar:
                names = [name for name in jar.namelist() if re.fullmatch(r"common/(message|metadata)/\w+\.json", name)]
                for name in names:
                    lines = jar.read(name).decode().splitlines()
                    schema = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
                    found[schema["name"]] = schema
    return found


def ours(name: str) -> Shape:
    text = (files("brokers.gateways.kraft") / "layouts" / f"{name}.json").read_text()
    read: Shape = json.loads(text)
    return read


def within(field: Shape, key: str, version: int) -> bool:
    return version in versions(field.get(key, "none"))


def shape_of(message: Shape, version: int) -> list[Shape]:
    """Say which fields a message has in one version, and what each is there."""
    common = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", [])}

    def shape(field: Shape) -> Shape:
        inner = field.get("fields", common.get(field["type"].removeprefix("[]")))
        return {
            "name": field["name"],
            "type": field["type"],
            "nullable": within(field, "nullableVersions", version),
            "tag": field["tag"] if within(field, "taggedVersions", version) else None,
            "default": field.get("default"),
            "flexible": version in versions(field.get("flexibleVersions", message["flexibleVersions"])),
            "fields": None if inner is None else [shape(one) for one in inner if within(one, "versions", version)],
        }

    return [shape(field) for field in message["fields"] if within(field, "versions", version)]


def ignorable(fields: list[Shape]) -> dict[str, bool]:
    return {field["name"]: bool(field.get("ignorable", False)) for field in fields}


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
