"""The requests that are compared, in the order in which they are played."""

from tests.real_kafka.stock import settings, topics
from tests.real_kafka.stock.requests import Asked, controllers, heartbeat, producer_ids, quorum

BROKERS = [
    producer_ids(1, "<epoch 1>"),
    producer_ids(2, "<epoch 2>"),
    producer_ids(1, 0),
    producer_ids(99, 0),
    heartbeat(99, 0),
    heartbeat(1, 0),
    Asked("UnregisterBroker", {"BrokerId": 99}),
    Asked("UnregisterBroker", {"BrokerId": -1}),
    Asked("ApiVersions", {"ClientSoftwareName": ""}, differs="Kafka refuses a client that does not say what it is"),
]

QUORUM = [
    *(controllers(endpoint_type) for endpoint_type in (1, 2, 3)),
    controllers(2, with_operations=True),
    quorum(("__cluster_metadata", 0)),
    quorum(("__cluster_metadata", 1)),
    quorum(("a", 0)),
    quorum(("__cluster_metadata", 0), ("a", 0)),
    quorum(),
]


SCRIPT: list[Asked] = [
    *topics.CREATIONS,
    *topics.CREATED_SETTINGS,
    *topics.GROWTH,
    *topics.REASSIGNMENTS,
    *topics.ISRS,
    *topics.ELECTIONS,
    *settings.SETTINGS,
    *settings.DESCRIBED,
    *settings.QUOTAS,
    *settings.CREDENTIALS,
    *settings.FEATURES,
    *topics.DIRECTORIES,
    *BROKERS,
    *QUORUM,
    *topics.DELETIONS,
]
