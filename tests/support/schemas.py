"""The message schemas inside Kafka's released jars, and the shape of a message in one version."""

import json
import re
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from brokers.wire.layout import versions

JARS_WITH_SCHEMAS = ("kafka-clients", "kafka-metadata")
Shape = dict[str, Any]


def schemas_in(jars: Sequence[Path], kafka_version: str) -> dict[str, Shape]:
    """Read every schema that Kafka's jars of a version carry, by its message's name."""
    return _schemas_in(tuple(jars), kafka_version)


@cache
def _schemas_in(jars: tuple[Path, ...], kafka_version: str) -> dict[str, Shape]:
    found: dict[str, Shape] = {}
    for path in jars:
        if path.name.removesuffix(f"-{kafka_version}.jar") in JARS_WITH_SCHEMAS:
            with zipfile.ZipFile(path) as jar:
                names = [name for name in jar.namelist() if re.fullmatch(r"common/(message|metadata)/\w+\.json", name)]
                for name in names:
                    lines = jar.read(name).decode().splitlines()
                    schema = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
                    found[schema["name"]] = schema
    return found


def _within(field: Shape, key: str, version: int) -> bool:
    return version in versions(field.get(key, "none"))


def shape_of(message: Shape, version: int) -> list[Shape]:
    """Return the fields that a message has in one version, with their types."""
    common = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", [])}

    def shape(field: Shape) -> Shape:
        inner = field.get("fields", common.get(field["type"].removeprefix("[]")))
        return {
            "name": field["name"],
            "type": field["type"],
            "nullable": _within(field, "nullableVersions", version),
            # Some releases write the number of a tag as a string.
            "tag": int(field["tag"]) if _within(field, "taggedVersions", version) else None,
            "default": field.get("default"),
            "flexible": version in versions(field.get("flexibleVersions", message["flexibleVersions"])),
            "fields": None if inner is None else [shape(one) for one in inner if _within(one, "versions", version)],
        }

    return [shape(field) for field in message["fields"] if _within(field, "versions", version)]


def ignorable(fields: list[Shape]) -> dict[str, bool]:
    """Return for each field whether a version that cannot carry it may drop it."""
    return {field["name"]: bool(field.get("ignorable", False)) for field in fields}


def versions_of(message: Shape) -> dict[int, list[Shape]]:
    """Return the fields of a message in each of its versions; none if no version is in use."""
    valid = versions(message["validVersions"])
    return {version: shape_of(message, version) for version in range(valid.low, valid.high + 1)}
