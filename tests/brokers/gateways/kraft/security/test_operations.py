"""Kafka's table of the operation that each request to a controller needs, row by row."""

from typing import Any

import pytest

from brokers.gateways.kraft.messages import Request, layouts
from brokers.gateways.kraft.metadata.image import MetadataImage, TopicState
from brokers.gateways.kraft.metadata.partition_table import Partitions
from brokers.gateways.kraft.metadata.sliced_map import SlicedMap
from brokers.gateways.kraft.security.authorizer import Action
from brokers.gateways.kraft.security.operations import FREE, ON_CLUSTER, ON_SETTINGS, ON_TOPICS
from brokers.gateways.kraft.security.permissions import Permitted, permitted
from brokers.gateways.kraft.security.token_requests import REQUESTS as TOKENS
from brokers.gateways.kraft.serving import APIS
from brokers.wire.errors import ErrorCode

TOPIC, GROUP, CLUSTER = (ErrorCode[f"{name}_AUTHORIZATION_FAILED"] for name in ("TOPIC", "GROUP", "CLUSTER"))
NOTHING = "AAAAAAAAAAAAAAAAAAAAAA"
HELD_ID = "AAAAAAAAAAAAAAAAAAAABQ"
IMAGE = MetadataImage(
    topics=SlicedMap({HELD_ID: TopicState("held", HELD_ID, Partitions())}), topic_ids=SlicedMap({"held": HELD_ID})
)

# As in ControllerApis of Kafka 4.4.
OF_CLUSTER = {
    "CLUSTER_ACTION": "AllocateProducerIds AlterPartition AssignReplicasToDirs BeginQuorumEpoch BrokerHeartbeat "
    "BrokerRegistration ControllerRegistration EndQuorumEpoch Envelope Fetch FetchSnapshot UpdateRaftVoter Vote",
    "ALTER": "AddRaftVoter AlterPartitionReassignments AlterUserScramCredentials CreateAcls DeleteAcls DescribeCluster "
    "ElectLeaders RemoveRaftVoter UnregisterBroker UnregisterController UpdateFeatures",
    "ALTER_CONFIGS": "AlterClientQuotas",
    "DESCRIBE": "DescribeAcls DescribeQuorum ListPartitionReassignments",
}
ROWS = [(name, operation) for operation, names in OF_CLUSTER.items() for name in names.split()]
VALUES: dict[str, dict[str, Any]] = {
    "AlterUserScramCredentials": {"Deletions": [{"Name": "u"}], "Upsertions": []},
    "AlterClientQuotas": {"Entries": [{"Entity": [], "Ops": []}]},
    "AlterPartitionReassignments": {"Topics": [{"Name": "held", "Partitions": [{"PartitionIndex": 0}]}]},
    "CreateAcls": {"Creations": [{}]},
    "DeleteAcls": {"Filters": [{}]},
    "ElectLeaders": {"TopicPartitions": None},
}
OPERATIONS = ("ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ")
TYPES = ("CLUSTER", "TOPIC", "GROUP", "TRANSACTIONAL_ID")


def request(name: str, **values: Any) -> Request:
    return Request(0, 1, 0, None, name, VALUES.get(name, {}) | values)


def asked(one: Request, *allowed: Action) -> Permitted:
    """Ask with a caller who may do exactly ``allowed``."""
    return permitted(one, IMAGE, lambda action, is_quiet=False: action in allowed)


def on(operation: str, resource_type: str = "CLUSTER", name: str = "kafka-cluster") -> Action:
    return Action(operation, resource_type, name)  # type: ignore[arg-type]


def codes(found: Permitted) -> dict[str, int]:
    return {
        str(one.get("Name") or one.get("ResourceName") or one.get("TopicId")): one["ErrorCode"] for one in found.refused
    }


def test_the_table_has_every_row() -> None:
    assert dict(ROWS) == ON_CLUSTER
    assert ON_TOPICS == {"CreatePartitions": "ALTER", "CreateTopics": "CREATE", "DeleteTopics": "DELETE"}
    names = {layout.api_key: name.removesuffix("Request") for name, layout in layouts().items() if "Request" in name}
    served = {names[key] for key in APIS}
    assert served <= FREE | ON_CLUSTER.keys() | ON_TOPICS.keys() | ON_SETTINGS.keys() | TOKENS


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("resource_type", TYPES)
@pytest.mark.parametrize(("name", "needed"), ROWS)
def test_a_request_of_the_cluster_needs_its_operation(
    name: str, needed: str, resource_type: str, operation: str
) -> None:
    one = request(name)
    found = asked(one, on(operation, resource_type))
    if (operation, resource_type) == (needed, "CLUSTER"):
        assert (found.request, found.refused) == (one, [])
    else:
        assert (found.request, found.is_whole) == (None, True)
        response = found.response(None)
        errors = [response, *response.get("Results", ()), *response.get("FilterResults", ())]
        errors += response.get("Entries", ())
        assert {values["ErrorCode"] for values in errors if "ErrorCode" in values} == {CLUSTER}
    assert asked(one, on(needed, "CLUSTER", "other")).request is None


@pytest.mark.parametrize("name", sorted(FREE))
def test_some_requests_are_for_everybody(name: str) -> None:
    assert asked(request(name)).request is not None


def test_an_unknown_request_is_for_those_who_may_change_the_cluster() -> None:
    assert asked(request("NewRequest")).request is None
    assert asked(request("NewRequest"), on("ALTER")).request is not None


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("resource_type", TYPES)
@pytest.mark.parametrize(
    ("name", "needed", "of_cluster"),
    [("CreateTopics", "CREATE", True), ("DeleteTopics", "DELETE", True), ("CreatePartitions", "ALTER", False)],
)
def test_each_topic_needs_its_operation(
    name: str, needed: str, of_cluster: bool, resource_type: str, operation: str
) -> None:
    topics = [{"Name": "held", "TopicId": NOTHING}, {"Name": "other", "TopicId": NOTHING}]
    one = request(name, Topics=topics, TopicNames=[])
    of_all = asked(one, on(operation, resource_type))
    is_enough = of_cluster and (operation, resource_type) == (needed, "CLUSTER")
    assert codes(of_all) == ({} if is_enough else {"held": TOPIC, "other": TOPIC})
    of_one = asked(one, on(operation, resource_type, "held"))
    if (operation, resource_type) == (needed, "TOPIC"):
        assert of_one.request is not None
        assert of_one.request.values["Topics"] == topics[:1]
        assert codes(of_one) == {"other": TOPIC}
    else:
        assert of_one.request is None
        assert codes(of_one) == {"held": TOPIC, "other": TOPIC}


HOLDERS = [(2, "held", "TOPIC", "held", TOPIC), (4, "1", "CLUSTER", "kafka-cluster", CLUSTER)]
HOLDERS += [(4, "", "CLUSTER", "kafka-cluster", CLUSTER), (16, "m", "CLUSTER", "kafka-cluster", CLUSTER)]
HOLDERS += [(32, "g", "GROUP", "g", GROUP)]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("allowed_type", TYPES)
@pytest.mark.parametrize(("kind", "resource", "resource_type", "named", "error"), HOLDERS)
@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("AlterConfigs", "ALTER_CONFIGS"),
        ("DescribeConfigs", "DESCRIBE_CONFIGS"),
        ("IncrementalAlterConfigs", "ALTER_CONFIGS"),
    ],
)
def test_settings_need_the_operation_on_what_has_them(
    name: str,
    needed: str,
    kind: int,
    resource: str,
    resource_type: str,
    named: str,
    error: ErrorCode,
    allowed_type: str,
    operation: str,
) -> None:
    one = request(name, Resources=[{"ResourceType": kind, "ResourceName": resource, "Configs": []}])
    found = asked(one, on(operation, allowed_type, named))
    is_enough = (operation, allowed_type) == (needed, resource_type)
    assert [refused["ErrorCode"] for refused in found.refused] == ([] if is_enough else [error])
    assert (found.request is None) == (not is_enough)
    assert asked(one, on(needed, resource_type, f"{named}2")).request is None


def test_resources_that_have_no_settings_are_left_to_the_handler() -> None:
    one = request("AlterConfigs", Resources=[{"ResourceType": 8, "ResourceName": "1", "Configs": []}])
    assert asked(one).request == one


def test_a_principal_that_may_not_describe_a_topic_does_not_learn_whether_it_exists() -> None:
    named = ["held", "none"]
    by_name = request("DeleteTopics", Topics=[], TopicNames=named)
    assert codes(asked(by_name)) == dict.fromkeys(named, TOPIC)
    known = [on("DESCRIBE", "TOPIC", name) for name in named]
    assert codes(asked(by_name, *known)) == {"held": TOPIC, "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    by_id = request("DeleteTopics", Topics=[{"Name": None, "TopicId": HELD_ID}], TopicNames=[])
    assert [(one["Name"], one["ErrorCode"]) for one in asked(by_id).refused] == [(None, TOPIC)]
    assert [(one["Name"], one["ErrorCode"]) for one in asked(by_id, *known).refused] == [("held", TOPIC)]
    assert asked(by_id, on("DELETE", "TOPIC", "held")).request == by_id
    unknown = request("DeleteTopics", Topics=[{"Name": None, "TopicId": NOTHING}], TopicNames=[])
    assert [one["ErrorCode"] for one in asked(unknown).refused] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_creator_who_may_not_describe_settings_does_not_see_them() -> None:
    one = request("CreateTopics", Topics=[{"Name": "a"}, {"Name": "b"}])
    made = {"NumPartitions": 1, "ReplicationFactor": 1, "Configs": [], "ErrorCode": ErrorCode.NONE}
    both = [{"Name": "a"} | made, {"Name": "b"} | made]
    found = asked(one, on("CREATE"), on("DESCRIBE_CONFIGS", "TOPIC", "b"))
    first, second = found.response({"Topics": both})["Topics"]
    assert (first["NumPartitions"], first["Configs"], first["TopicConfigErrorCode"]) == (-1, None, TOPIC)
    assert second == both[1]


def test_refusals_are_joined_to_what_was_done() -> None:
    one = request("CreatePartitions", Topics=[{"Name": "a"}, {"Name": "b"}])
    found = asked(one, on("ALTER", "TOPIC", "b"))
    done = {"Name": "b", "ErrorCode": ErrorCode.NONE}
    assert [answer["Name"] for answer in found.response({"Results": [done]})["Results"]] == ["b", "a"]
