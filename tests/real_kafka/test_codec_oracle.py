"""The newest Kafka's own classes read the bytes of our codec, and write the same: every message, in every version."""

import random
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.messages import layouts, message
from brokers.wire.layout import FieldLayout, Layout
from brokers.wire.plain import uuid_text
from conf.kafka_versions import KAFKA_VERSIONS
from tests.real_kafka.kafkas_classes import run_java

pytestmark = pytest.mark.kraft
MESSAGES_EACH = 20
# Only its classes know the newest version of every message.
NEWEST = list(KAFKA_VERSIONS.values())[-1]
SOURCE = Path(__file__).with_name("Messages.java")
BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def drawn(rng: random.Random, fields: tuple[FieldLayout, ...], version: int) -> dict[str, Any]:
    """Draw values for the fields of a version; some fields keep their default."""
    carried = [field for field in fields if version in field.versions and rng.random() > 0.1]
    return {field.name: drawn_field(rng, field, version) for field in carried}


def drawn_field(rng: random.Random, field: FieldLayout, version: int) -> Any:
    if version in field.nullable and rng.random() < 0.3:
        return None
    if field.array:
        return [drawn_one(rng, field, version) for _ in range(rng.choice((0, 1, 2, 130)) if not field.fields else 2)]
    return drawn_one(rng, field, version)


def drawn_one(rng: random.Random, field: FieldLayout, version: int) -> Any:
    match field.type:
        case "struct":
            return drawn(rng, field.fields, version)
        case "bool":
            return rng.random() < 0.5
        case "uint16":
            return rng.randrange(2**16)
        case "float64":
            return rng.random()
        case "uuid":
            return uuid_text(rng.randbytes(16))
        case "string":
            return "".join(rng.choices("aß€😀.-", k=rng.choice((0, 3, 200))))
        case "bytes" | "records":
            return rng.randbytes(rng.choice((0, 3, 200)))
        case kind:
            return rng.randrange(-(2 ** BITS[kind]), 2 ** BITS[kind])


def class_of(layout: Layout) -> str:
    package = "metadata" if layout.kind == "metadata" else "message"
    # If a message has its own request or response class, Kafka calls its data class "…Data".
    suffix = "Data" if layout.kind in ("request", "response", "header") else ""
    return f"org.apache.kafka.common.{package}.{layout.name}{suffix}"


def test_kafka_reads_what_we_write_and_writes_it_again() -> None:
    rng = random.Random(1)
    questions: list[str] = []
    for layout in layouts().values():
        for version in range(layout.valid.low, layout.valid.high + 1):
            for _ in range(MESSAGES_EACH):
                data = message(layout.name).encode(version, drawn(rng, layout.fields, version))
                questions.append(f"{class_of(layout)} {version} {data.hex()}")
    answers = run_java(SOURCE, lines=questions, kafka=NEWEST).splitlines()
    assert len(answers) == len(questions) > 2_000
    wrong = [(ask, answer) for ask, answer in zip(questions, answers, strict=True) if ask.split(" ")[2] != answer]
    assert wrong[:3] == []
