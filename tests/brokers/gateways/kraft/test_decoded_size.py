"""What a request becomes in memory is bounded by its size, and all that Kafka sends is within the bound."""

import tracemalloc
from typing import Any

import pytest

from brokers.gateways.kraft.messages import MessageError, layouts, message
from brokers.wire.decoded_size import MESSAGE_BYTES_MAX, decoded_bytes_max
from brokers.wire.layout import FieldLayout

ELEMENTS = 1_000
# Numbers and texts that Python does not share.
VALUES: dict[str, Any] = {"bool": True, "int8": 1, "float64": 1.5, "string": "ab", "bytes": b"ab", "records": b"ab"}
VALUES |= dict.fromkeys(("int16", "uint16", "int32", "uint32", "int64"), 1_000)
REQUESTS = [
    (name.removesuffix("Request"), version)
    for name, layout in layouts().items()
    if layout.kind == "request"
    for version in range(layout.valid.low, layout.valid.high + 1)
]


def uuid_numbered(number: int) -> str:
    """Return a uuid as text, another one for each number."""
    return f"{number:021d}A"


def cheap(fields: tuple[FieldLayout, ...], version: int, *, is_empty: bool, number: int, depth: int = 0) -> Any:
    """Return a message of many elements that take few bytes each: texts are empty, or no value is shared."""
    values: dict[str, Any] = {}
    for field in fields:
        if version not in field.versions or version in field.tagged:
            continue
        if field.array:
            values[field.name] = [
                one_of(field, version, is_empty, one, depth) for one in range(1 if depth else ELEMENTS)
            ]
        elif field.type != "struct" or version not in field.nullable:
            values[field.name] = one_of(field, version, is_empty, number, depth)
    return values


def one_of(field: FieldLayout, version: int, is_empty: bool, number: int, depth: int) -> Any:
    if field.type == "struct":
        return cheap(field.fields, version, is_empty=is_empty, number=number, depth=depth + 1)
    if field.type == "uuid":
        return uuid_numbered(number)
    return type(VALUES[field.type])() if is_empty else VALUES[field.type]


@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "filled"])
@pytest.mark.parametrize(("name", "version"), REQUESTS)
def test_a_request_that_is_read_takes_no_more_memory_than_is_counted(name: str, version: int, is_empty: bool) -> None:
    one = message(f"{name}Request")
    data = one.encode(version, cheap(one.layout.fields, version, is_empty=is_empty, number=0))
    tracemalloc.start()
    try:
        one.decode(version, data)
        taken = tracemalloc.get_traced_memory()[1]
    except MessageError:
        assert is_empty, "elements that say something are always read"
        return
    finally:
        tracemalloc.stop()
    # What is there once counts only in a request of a few bytes.
    assert taken <= decoded_bytes_max(len(data)) + 10_000


def test_the_limit_follows_the_size_up_to_that_of_one_message() -> None:
    limits = [decoded_bytes_max(size) for size in (0, 1_000, 64 * 1024, 1_000_000, 100_000_000)]
    assert limits == [0, 100_000, 6_553_600, 44_194_304, MESSAGE_BYTES_MAX]


def reads(name: str, version: int, **values: Any) -> int:
    """Check that a request can be read; return its size in bytes."""
    one = message(f"{name}Request")
    data = one.encode(version, values)
    assert one.decode(version, data).keys() >= values.keys()
    return len(data)


@pytest.mark.parametrize("replicas", [1, 3, 5])
@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_may_ask_for_fifty_thousand_isrs(version: int, replicas: int) -> None:
    members = range(1_001, 1_001 + replicas)
    isr: dict[str, Any] = {"NewIsr": list(members)}
    if version > 2:
        isr = {"NewIsrWithEpochs": [{"BrokerId": one, "BrokerEpoch": 10**9 + one} for one in members]}
    partitions = [
        {"PartitionIndex": number, "LeaderEpoch": 300, "LeaderRecoveryState": 0, "PartitionEpoch": 400} | isr
        for number in range(50_000)
    ]
    topic = {"TopicId": uuid_numbered(1), "Partitions": partitions}
    assert reads("AlterPartition", version, BrokerId=1, BrokerEpoch=5, Topics=[topic]) > 900_000


def test_an_admin_may_ask_for_as_much_as_one_request_may_change() -> None:
    names = [f"t{number}" for number in range(10_000)]
    topics = [
        {"Name": name, "NumPartitions": 1, "ReplicationFactor": -1, "Assignments": [], "Configs": []} for name in names
    ]
    reads("CreateTopics", 7, Topics=topics, timeoutMs=1, validateOnly=False)
    reads("DeleteTopics", 6, Topics=[{"Name": name} for name in names], TimeoutMs=1)
    reads("DeleteTopics", 5, TopicNames=names, TimeoutMs=1)
    given = [{"PartitionIndex": number, "BrokerIds": [1_000, 2_000, 3_000]} for number in range(10_000)]
    reads("CreateTopics", 7, Topics=[topics[0] | {"Assignments": given}], timeoutMs=1, validateOnly=False)
    cancelled = [{"PartitionIndex": number, "Replicas": None} for number in range(10_000)]
    reads("AlterPartitionReassignments", 0, TimeoutMs=1, Topics=[{"Name": "t", "Partitions": cancelled}])
    elected = [{"Topic": name, "Partitions": [0]} for name in names]
    reads("ElectLeaders", 2, ElectionType=0, TopicPartitions=elected, TimeoutMs=1)
    quotas = [
        {
            "Entity": [{"EntityType": "user", "EntityName": name}],
            "Ops": [{"Key": "producer_byte_rate", "Value": 1.0, "Remove": False}],
        }
        for name in names
    ]
    reads("AlterClientQuotas", 1, Entries=quotas, ValidateOnly=False)
    described = [{"ResourceType": 4, "ResourceName": str(number), "ConfigurationKeys": None} for number in range(1_000)]
    reads("DescribeConfigs", 4, Resources=described, IncludeSynonyms=False, IncludeDocumentation=False)
    moved = [{"PartitionIndex": number} for number in range(2_250)]
    directory = {"Id": uuid_numbered(1), "Topics": [{"TopicId": uuid_numbered(2), "Partitions": moved}]}
    reads("AssignReplicasToDirs", 0, BrokerId=1, BrokerEpoch=5, Directories=[directory])
