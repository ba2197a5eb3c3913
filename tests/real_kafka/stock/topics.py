"""Requests about topics, partitions, replicas and leaders, and why some answers differ."""

from tests.real_kafka.stock.requests import (
    NO_ID,
    UNKNOWN_ID,
    Asked,
    assign,
    create,
    delete,
    elect,
    grow,
    isr,
    move,
    moves,
    topic,
)

OWN_DIRECTORIES = "a directory that the broker has not registered is refused; Kafka takes the replica offline"

NO_TIERED_STORAGE = "the gateway does not know whether brokers have tiered storage, so it lets brokers judge"
WITHOUT_EMPTY = "an election in all partitions names only the topics in which one was held"
VALIDATED_ID = "Kafka answers with an id for a topic that is only validated, which no topic ever gets"

CREATIONS = [
    create(topic("a", assigned={0: [1, 2, 3], 1: [2, 3, 1]}), topic("b", replicas=2)),
    create(topic("i", assigned={0: [1, 2, 3], 1: [2, 3, 1]})),
    create(topic("a")),
    create(topic("c", replicas=5)),
    create(topic("c", 0)),
    create(topic("c", -2)),
    create(topic("c", replicas=0)),
    create(topic("c", replicas=-2)),
    create(topic("c", -1, -1)),
    create(topic("d", 3, -1)),
    create(topic("d2", -1, 2)),
    *(create(topic(name)) for name in ("", ".", "..", "x" * 250, "x" * 249, "ä", "a b", "a.b", "a_b")),
    create(topic("__consumer_offsets")),
    create(topic("__cluster_metadata")),
    create(topic("v"), topic("w", replicas=9), validate_only=True, differs=VALIDATED_ID),
    create(topic("v", 2)),
    Asked(
        "CreateTopics",
        {"Topics": [topic("late")], "timeoutMs": 0, "validateOnly": True},
        differs="Kafka has no time for it; a gateway takes its own",
    ),
    create(topic("dup"), topic("dup")),
    create(topic("e") | {"Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]}),
    *(
        create(topic("e", assigned=assigned))
        for assigned in (
            {0: [1], 2: [2]},
            {0: [1], 1: [2, 3]},
            {0: [1, 1]},
            {0: [9]},
            {0: []},
            {1: [1]},
            {0: [-1]},
            {0: [1], -1: [2]},
            {0: [1], 2**31 - 1: [2]},
        )
    ),
    create(topic("big", 20_000)),
    create(),
]

CREATED_SETTINGS = [
    create(topic("f1", cleanup_policy="compact", retention_ms="1000")),
    create(topic("f2", cleanup_policy="compact,delete")),
    create(topic("f3", cleanup_policy="x")),
    create(topic("f3", cleanup_policy=None)),
    create(topic("f3", no_such="x")),
    create(topic("f3", retention_ms="abc")),
    create(topic("f3", replicas=2, min_insync_replicas="0")),
    create(topic("f4", replicas=2, min_insync_replicas="3")),
    create(topic("f5", segment_bytes="10")),
    create(topic("f5", compression_type="zstd", compression_zstd_level="99")),
    create(topic("f5", leader_replication_throttled_replicas="x")),
    create(topic("f5", max_message_bytes="-1")),
    create(topic("f5", unclean_leader_election_enable="maybe")),
    create(topic("f6", remote_storage_enable="true"), differs=NO_TIERED_STORAGE),
    create(topic("f7", retention_ms="10", local_retention_ms="20")),
]

GROWTH = [
    grow(("a", 3)),
    grow(("a", 3)),
    grow(("a", 2)),
    grow(("nope", 3)),
    grow(("a", 5, [[1, 2, 3], [2, 3, 1]])),
    grow(("a", 6, [[1, 2]])),
    grow(("a", 6, [[1, 2, 3], [2, 1, 3]])),
    grow(("a", 6, [])),
    grow(("a", 6, [[1, 1, 2]])),
    grow(("a", 6, [[7, 1, 2]])),
    grow(("a", 6, [[-1, 1, 2]])),
    grow(("a", 0)),
    grow(("a", -1)),
    grow(("a", 7), ("a", 8)),
    grow(("a", 9), validate_only=True),
    *(grow(("a", 3), (name, 3)) for name in ("", "x" * 3_000)),
    grow(),
]

REASSIGNMENTS = [
    move({"a": {0: [1, 2, 3]}}),
    move({"a": {0: [2, 3, 4]}}),
    moves(None),
    moves({"a": [0]}),
    moves({"a": [1]}),
    moves({"nope": [0]}),
    moves({"a": [99]}),
    moves({}),
    move({"a": {0: None}}),
    move({"a": {0: None}}),
    moves(None),
    move({"a": {99: [1, 2]}}),
    move({"a": {-1: [1, 2]}}),
    move({"nope": {0: [1]}}),
    *(move({name: {0: [1]}}) for name in ("", "x" * 3_000)),
    move({"a": {}}),
    moves({"": [0]}),
    moves({"a": [-1]}),
    *(move({"a": {0: ids}}) for ids in ([], [1, 1], [9], [-1])),
    move({"a": {0: [1, 2]}}, may_resize=False),
    move({"a": {0: [1, 2, 4]}}, may_resize=False),
    move({"a": {0: None}}),
    move({"a": {0: [4], 1: [99]}}),
    moves(None),
    move({"a": {0: None}}),
    move({}),
]

ISRS = [
    isr([1, 2]),
    isr([1], (0, 0)),
    isr([1], (0, 99)),
    isr([1], (99, 1)),
    isr([1], (0, 1), sender=(1, 0)),
    isr([1], (0, 1), sender=(9, 0)),
    isr([1], (0, 1), place=(UNKNOWN_ID, 0)),
    isr([1], (0, 1), place=("<id i>", 99)),
    isr([2], (0, 1), sender=(2, "<epoch 2>")),
    isr([1], (0, 1), place=("<id i>", -1)),
    isr([1, 4], (0, 1)),
    isr([1, -4], (0, 1)),
    isr([1, 9], (0, 1)),
    isr([], (0, 1)),
    isr([2], (0, 1)),
    isr([1, 1], (0, 1)),
    isr([1], (0, 1), recovery=1),
    isr([(1, 1234)], (0, 1)),
    isr([1, 2], (0, 1)),
    isr([1, 2, 3], (0, 1)),
    isr([1, 2, 3], (0, 2)),
    Asked("AlterPartition", {"BrokerId": 1, "BrokerEpoch": "<epoch 1>", "Topics": []}),
]

ELECTIONS = [
    *(elect(0, {"a": parts}) for parts in ([0, 1], [99], [-1], [])),
    elect(0, {"nope": [0]}),
    *(elect(0, {"a": [0, 1, 0], name: [0]}) for name in ("", "x" * 3_000)),
    elect(1, {"a": [0]}),
    elect(2, {"a": [0]}),
    elect(0, {}),
    elect(0, None, differs=WITHOUT_EMPTY),
    elect(1, None, differs=WITHOUT_EMPTY),
]

DIRECTORIES = [
    assign(UNKNOWN_ID, ("<id i>", 0), (1, "<epoch 1>"), differs=OWN_DIRECTORIES),
    assign(UNKNOWN_ID, (UNKNOWN_ID, 0), (1, "<epoch 1>")),
    assign(UNKNOWN_ID, ("<id i>", 99), (1, "<epoch 1>")),
    assign(UNKNOWN_ID, ("<id i>", 0), (4, "<epoch 4>")),
    assign(UNKNOWN_ID, ("<id i>", 0), (1, 0)),
    assign(UNKNOWN_ID, ("<id i>", 0), (99, 0)),
    assign(NO_ID, ("<id i>", 0), (1, "<epoch 1>")),
]

DELETIONS = [
    delete("nope"),
    delete("a", "a"),
    delete(("a", "<id a>")),
    delete((None, NO_ID)),
    delete("b", (None, "<id b>")),
    delete((None, "<id b>"), (None, "<id b>")),
    delete((None, UNKNOWN_ID)),
    delete(""),
    delete((None, "<id a>")),
    delete("b"),
    delete("__consumer_offsets", "v"),
    delete(),
    create(topic("b")),
]
