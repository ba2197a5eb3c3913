"""Topics for tests of admin requests."""

from typing import Any

from brokers.wire.errors import ErrorCode
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **config: str | None) -> dict[str, Any]:
    configs = [{"Name": key.replace("_", "."), "Value": value} for key, value in config.items()]
    return {
        "Name": name,
        "NumPartitions": partitions,
        "ReplicationFactor": replicas,
        "Assignments": [],
        "Configs": configs,
    }


def create(client: ControllerClient, *topics: dict[str, Any], **given: Any) -> list[dict[str, Any]]:
    response: list[dict[str, Any]] = client.forward("CreateTopics", Topics=list(topics), **given)["Topics"]
    return response


def created(client: ControllerClient, name: str, partitions: int = 1, replicas: int = 3) -> dict[str, Any]:
    [response] = create(client, new_topic(name, partitions, replicas))
    assert response["ErrorCode"] == ErrorCode.NONE, response
    return response


def topics(quorum: InProcessQuorum) -> dict[str, dict[str, Any]]:
    return {held["topic"]: held for held in quorum.view()["topics"]}
