"""The layouts of mock brokers against the schemas inside Kafka's jars, version by version."""

import json
from functools import cache
from importlib.resources import files

import pytest

from brokers.mock.apis.serving import APIS
from brokers.mock.messages import CATALOGUE
from brokers.wire.layout import versions
from conf.jars import fetch
from conf.kafka_versions import KAFKA_VERSIONS
from tests.support.schemas import Shape, ignorable, schemas_in, shape_of

LAYOUTS = {file.name.removesuffix(".json"): file for file in (files("brokers.mock") / "layouts").iterdir()}


@cache
def released(number: str) -> dict[str, Shape]:
    # Once, because it checks the hash of every jar.
    return schemas_in(fetch(KAFKA_VERSIONS[number].jars), number)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_a_layout_is_what_kafka_released(name: str) -> None:
    mine = json.loads(LAYOUTS[name].read_text())
    claimed = versions(mine["validVersions"])
    compared = set()
    for number in KAFKA_VERSIONS:
        theirs = released(number)[name]
        assert [mine[key] for key in ("name", "type", "apiKey")] == [theirs[key] for key in ("name", "type", "apiKey")]
        valid = versions(theirs["validVersions"])
        for version in range(max(claimed.low, valid.low), min(claimed.high, valid.high) + 1):
            assert shape_of(mine, version) == shape_of(theirs, version), (number, version)
            compared.add(version)
        told = ignorable(theirs["fields"])
        assert ignorable(mine["fields"]) == {field: told[field] for field in ignorable(mine["fields"])}, number
    assert compared == set(range(claimed.low, claimed.high + 1))


def test_each_request_that_can_be_read_is_served() -> None:
    assert CATALOGUE.requests.keys() == APIS.keys()
