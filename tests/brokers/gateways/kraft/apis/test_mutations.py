"""The quota controller_mutation_rate at a gateway: which clients are refused or told to wait, and what is free."""

import itertools
from typing import Any

import pytest

from brokers.gateways.kraft.mutation_quotas import KEY
from brokers.wire.errors import ErrorCode
from brokers.wire.layout import ZERO_UUID
from brokers.wire.schema import Values
from tests.brokers.gateways.kraft.apis.topic_requests import new_topic
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

pytestmark = pytest.mark.usefixtures("epochs")

THROTTLED, NONE = ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE
# One token in 100 s, so a test sees no token come. The first topic takes the bucket below zero.
SLOW = 0.01
numbers = itertools.count()


def limited(client: ControllerClient, rate: float | None = SLOW, **names: str | None) -> str:
    """Set or remove the quota of a new user, or of ``names``; return the principal of that user."""
    user = f"user-{next(numbers)}"
    parts = {name.replace("_", "-"): value for name, value in names.items()} or {"user": user}
    entry = {
        "Entity": [{"EntityType": part, "EntityName": name} for part, name in parts.items()],
        "Ops": [{"Key": KEY, "Value": rate or 0.0, "Remove": rate is None}],
    }
    answer = client.forward("AlterClientQuotas", Entries=[entry], ValidateOnly=False)
    assert [one["ErrorCode"] for one in answer["Entries"]] == [NONE]
    return f"User:{user}"


def topics(*names: str, partitions: int = 1, **more: Any) -> list[Values]:
    return [new_topic(name, partitions=partitions, **more) for name in names]


def fresh(count: int) -> list[str]:
    return [f"topic-{next(numbers)}" for _ in range(count)]


def create(client: ControllerClient, principal: str, created: list[Values], version: int = 7, **more: Any) -> Values:
    return client.forward("CreateTopics", version, principal, Topics=created, timeoutMs=10_000, **more)


def codes(response: Values, listed: str = "Topics") -> list[int]:
    return [one["ErrorCode"] for one in response[listed]]


def names_in(quorum: InProcessQuorum) -> set[str]:
    return {one["topic"] for one in quorum.view()["partitions"]}


def test_topics_beyond_the_quota_are_refused(quorum: InProcessQuorum, client: ControllerClient) -> None:
    bob = limited(client)
    first, second, third = fresh(3)
    response = create(client, bob, topics(first, second))
    assert codes(response) == [NONE, THROTTLED]
    # A hundredth of a token comes each second, and 0.89 are owed.
    assert 80_000 <= response["ThrottleTimeMs"] <= 89_000
    assert KEY in response["Topics"][1]["ErrorMessage"]
    response = create(client, bob, topics(third))
    assert codes(response) == [THROTTLED]
    assert response["ThrottleTimeMs"] > 0
    assert names_in(quorum) & {first, second, third} == {first}
    assert codes(create(client, "User:other", topics(second))) == [NONE]


def test_older_clients_are_told_to_wait_and_nothing_is_refused(client: ControllerClient) -> None:
    bob = limited(client)
    response = create(client, bob, topics(*fresh(2)), version=5)
    assert codes(response) == [NONE, NONE]
    assert response["ThrottleTimeMs"] > 100_000
    response = create(client, bob, topics(*fresh(1)), version=6)
    assert codes(response) == [THROTTLED]


@pytest.mark.parametrize(("version", "code"), [(3, THROTTLED), (2, NONE)])
def test_added_partitions_count(client: ControllerClient, version: int, code: ErrorCode) -> None:
    bob = limited(client)
    one, two = fresh(2)
    create(client, "User:admin", topics(one, two))
    grown = [{"Name": name, "Count": 3, "Assignments": None} for name in (one, two)]
    response = client.forward("CreatePartitions", version, bob, Topics=grown, TimeoutMs=10_000, ValidateOnly=False)
    assert codes(response, "Results") == [NONE, code]
    # Of two or of four partitions.
    assert (response["ThrottleTimeMs"] < 200_000) == (code == THROTTLED)


@pytest.mark.parametrize(("version", "code"), [(6, THROTTLED), (5, THROTTLED), (4, NONE)])
def test_deleted_partitions_count(
    quorum: InProcessQuorum, client: ControllerClient, version: int, code: ErrorCode
) -> None:
    bob = limited(client)
    one, two = fresh(2)
    created = create(client, "User:admin", topics(one, two, partitions=2))
    ids = [topic["TopicId"] for topic in created["Topics"]]
    named: Values = {"TopicNames": [one, two]}
    if version == 6:
        named = {"Topics": [{"Name": one, "TopicId": ZERO_UUID}, {"Name": None, "TopicId": ids[1]}]}
    response = client.forward("DeleteTopics", version, bob, TimeoutMs=10_000, **named)
    assert codes(response, "Responses") == [NONE, code]
    assert [topic["Name"] for topic in response["Responses"]] == [one, two]
    if version == 6:
        assert [topic["TopicId"] for topic in response["Responses"]] == ids
    assert response["ThrottleTimeMs"] > 0


def test_what_is_refused_for_another_reason_does_not_count(client: ControllerClient) -> None:
    bob = limited(client)
    (there,) = fresh(1)
    create(client, "User:admin", topics(there))
    many, few = fresh(2)
    wrong = topics(many, partitions=1_000, replicas=9)
    assert codes(create(client, bob, wrong)) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert codes(create(client, bob, topics(there, partitions=1_000))) == [ErrorCode.TOPIC_ALREADY_EXISTS]
    twice = create(client, bob, topics(many, many, partitions=1_000))
    assert codes(twice) == [ErrorCode.INVALID_REQUEST]
    gone = client.forward("DeleteTopics", 5, bob, TopicNames=[few, many], TimeoutMs=10_000)
    assert set(codes(gone, "Responses")) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    less = [{"Name": there, "Count": 1, "Assignments": None}, {"Name": few, "Count": 1_000, "Assignments": None}]
    refused = client.forward("CreatePartitions", 3, bob, Topics=less, TimeoutMs=10_000, ValidateOnly=False)
    assert codes(refused, "Results") == [ErrorCode.INVALID_PARTITIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes(create(client, bob, topics(few))) == [NONE]


def test_a_topic_that_is_named_twice_stays_when_the_quota_is_exceeded(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    bob = limited(client)
    (there,) = fresh(1)
    created = create(client, bob, topics(there))
    twice = [
        {"Name": there, "TopicId": ZERO_UUID},
        {"Name": None, "TopicId": created["Topics"][0]["TopicId"]},
    ]
    response = client.forward("DeleteTopics", 6, bob, Topics=twice, TimeoutMs=10_000)
    assert codes(response, "Responses") == [ErrorCode.INVALID_REQUEST]
    assert there in names_in(quorum)


def test_a_request_that_only_validates_counts_too_as_in_kafka(client: ControllerClient) -> None:
    bob = limited(client)
    (name,) = fresh(1)
    assert codes(create(client, bob, topics(name), validateOnly=True)) == [NONE]
    assert codes(create(client, bob, topics(name))) == [THROTTLED]


def test_a_topic_of_default_size_counts_with_as_many_partitions_as_the_engine_gives_it(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    bob = limited(client)
    quorum.decide_by(num_partitions=3)
    try:
        response = create(client, bob, topics(*fresh(1), partitions=-1), version=5)
    finally:
        quorum.decide_by()
    assert (codes(response), response["Topics"][0]["NumPartitions"]) == ([NONE], 3)
    # Of three partitions, less what was in the bucket.
    assert 200_000 < response["ThrottleTimeMs"] < 300_000


def test_clients_of_one_id_share_its_quota_until_it_is_removed(client: ControllerClient) -> None:
    # The tests' client has this id.
    limited(client, client_id="test")
    try:
        assert codes(create(client, "User:carol", topics(*fresh(1)))) == [NONE]
        assert codes(create(client, "User:dave", topics(*fresh(1)))) == [THROTTLED]
    finally:
        limited(client, None, client_id="test")
    assert codes(create(client, "User:dave", topics(*fresh(1)))) == [NONE]


def test_a_request_to_the_gateway_itself_counts_for_its_sender(client: ControllerClient) -> None:
    limited(client, user="ANONYMOUS")
    one, two = fresh(2)
    assert codes(client.ask("CreateTopics", Topics=topics(one, two), timeoutMs=10_000)) == [NONE, THROTTLED]
