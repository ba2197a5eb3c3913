"""The layouts of a gateway to ZooKeeper-mode brokers against the schemas inside Kafka's jars, version by version."""

import json
import re
from functools import cache
from importlib.resources import files

import pytest

from brokers.gateways.zk.messages import CATALOGUE, IBP_2_6, IBP_3_9, SERVED
from brokers.wire.layout import versions
from conf.jars import fetch
from conf.kafka_versions import ZOOKEEPER_KAFKA_VERSION
from tests.support.schemas import Shape, ignorable, schemas_in, shape_of

OWN = sorted(file.name.removesuffix(".json") for file in (files("brokers.gateways.zk") / "layouts").iterdir())
SPOKEN = {key: {IBP_3_9.of(key), IBP_2_6.of(key)} for key in (4, 5, 6)} | {
    key: set(range(low, high + 1)) for key, (low, high) in SERVED.items()
}
BY_KEY = {(layout.api_key, layout.kind): name for name, layout in CATALOGUE.layouts.items()}


@cache
def released() -> dict[str, Shape]:
    # Once, because it checks the hash of every jar.
    return schemas_in(fetch("zookeeper-broker"), ZOOKEEPER_KAFKA_VERSION)


def ours(name: str) -> Shape:
    packages = ("brokers.gateways.zk", "brokers.gateways.shared", "brokers.wire.configs")
    places = (files(package) / "layouts" / f"{name}.json" for package in packages)
    read: Shape = json.loads(next(place for place in places if place.is_file()).read_text())
    return read


@pytest.mark.parametrize("name", OWN)
def test_a_layout_is_what_kafka_released(name: str) -> None:
    mine, theirs = ours(name), released()[name]
    assert [mine.get(key) for key in ("name", "type", "apiKey")] == [
        theirs.get(key) for key in ("name", "type", "apiKey")
    ]
    claimed, valid = versions(mine["validVersions"]), versions(theirs["validVersions"])
    assert valid.low <= claimed.low <= claimed.high == valid.high, "the newest version is always claimed"
    for version in range(claimed.low, claimed.high + 1):
        assert shape_of(mine, version) == shape_of(theirs, version)
    # A field that no claimed version has may be left out.
    told = ignorable(theirs["fields"])
    assert ignorable(mine["fields"]) == {field: told[field] for field in ignorable(mine["fields"])}


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("api_key", sorted(SPOKEN))
def test_every_version_that_is_spoken_is_kafkas(api_key: int, kind: str) -> None:
    name = BY_KEY[api_key, kind]
    for version in SPOKEN[api_key]:
        assert version in CATALOGUE.layouts[name].valid
        assert shape_of(ours(name), version) == shape_of(released()[name], version)


def test_the_requests_are_the_newest_that_such_brokers_know() -> None:
    newest = {key: versions(released()[BY_KEY[key, "request"]]["validVersions"]).high for key in (4, 5, 6)}
    assert newest == {key: IBP_3_9.of(key) for key in newest}


def test_layouts_hold_no_texts() -> None:
    assert [name for name in OWN if re.search(r'"about"|//', json.dumps(ours(name)))] == []


def test_the_comparison_notices_a_difference() -> None:
    changed = json.loads(json.dumps(ours("UpdateMetadataRequest")))
    changed["fields"][2]["tag"] = 9
    assert shape_of(changed, 7) == shape_of(released()["UpdateMetadataRequest"], 7)
    assert shape_of(changed, 8) != shape_of(released()["UpdateMetadataRequest"], 8)
