"""Strimzi's KafkaTopic resources, as YAML or as the JSON of ``kubectl get kafkatopic -o json``."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import Meta

from cli.admin_requests import Request
from cli.errors import WrongUse
from conf.layers import as_text

BYTES_MAX = 4 * 1024 * 1024
TOPICS_MAX = 10_000
_KIND, _LISTS = "KafkaTopic", ("List", "KafkaTopicList")
_Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class _Metadata(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct, rename="camel"):
    # None stands for the cluster's default.
    partitions: _Count | None = None
    replicas: _Count | None = None
    topic_name: str | None = None
    config: dict[str, str | bool | int | float] = {}


class _KafkaTopic(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


def read_kafka_topics(file: BinaryIO) -> list[Request]:
    """Read the requests to create what a file describes. Raises ``WrongUse`` that names the resource and the field."""
    # Only this needs it.
    import yaml

    # A pipe may have no name.
    name = getattr(file, "name", "-")
    text = file.read(BYTES_MAX + 1)
    if len(text) > BYTES_MAX:
        raise WrongUse(f"{name} has more than {BYTES_MAX} bytes")
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise WrongUse(f"{name} is not YAML: {told}") from error
    requests = [_request(name, nth, one) for nth, one in enumerate(_resources(documents), start=1)]
    if not requests or len(requests) > TOPICS_MAX:
        raise WrongUse(f"{name} has {len(requests)} resources: expected 1 to {TOPICS_MAX}")
    twice = [name for name, count in Counter(one["topic"] for one in requests).items() if count > 1]
    if twice:
        raise WrongUse(f"{name} names {', '.join(twice[:3])} twice")
    return requests


def _resources(documents: list[Any]) -> Iterator[Any]:
    for one in documents:
        if isinstance(one, dict) and one.get("kind") in _LISTS and isinstance(one.get("items"), list):
            yield from one["items"]
        elif one is not None:
            yield one


def _request(file: str, nth: int, resource: Any) -> Request:
    where = f"{file}: resource {nth}"
    kind = resource.get("kind") if isinstance(resource, dict) else None
    if kind != _KIND:
        raise WrongUse(f"{where}: kind is {kind!r}: expected {_KIND}")
    try:
        found = msgspec.convert(resource, _KafkaTopic)
    except (msgspec.ValidationError, TypeError) as error:
        raise WrongUse(f"{where}: {error}") from error
    sizes = {"partitions": found.spec.partitions, "replication_factor": found.spec.replicas}
    return {
        "kind": "create_topic",
        "topic": found.spec.topic_name or found.metadata.name,
        "config": {key: as_text(value) for key, value in found.spec.config.items()},
        **{name: size for name, size in sizes.items() if size is not None},
    }
