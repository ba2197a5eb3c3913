"""The messages between a controller and brokers in ZooKeeper mode, and their versions.

The layouts of admins' requests, and of requests that brokers of Kafka 4 send too, are in ``brokers.gateways.shared``.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from brokers.wire.catalogue import Catalogue

CATALOGUE = Catalogue("brokers.wire.configs", "brokers.gateways.shared", "brokers.gateways.zk")

LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, CONTROLLED_SHUTDOWN = 4, 5, 6, 7
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ELECT_LEADERS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 43, 45, 46
ALTER_PARTITION, ALLOCATE_PRODUCER_IDS = 56, 67


class Versions(NamedTuple):
    """The versions of the requests to brokers, by ``inter.broker.protocol.version``."""

    leader_and_isr: int
    update_metadata: int
    stop_replica: int

    def of(self, api_key: int) -> int:
        """Return the version of one of the three requests."""
        return {
            LEADER_AND_ISR: self.leader_and_isr,
            UPDATE_METADATA: self.update_metadata,
            STOP_REPLICA: self.stop_replica,
        }[api_key]


# Kafka's ControllerChannelManager has these versions.
IBP_3_9 = Versions(leader_and_isr=7, update_metadata=8, stop_replica=4)
IBP_2_6 = Versions(leader_and_isr=4, update_metadata=6, stop_replica=3)
BY_IBP = {"3.9": IBP_3_9, "2.6": IBP_2_6}
# With these, leaders write their ISRs into ZooKeeper.
WRITING_IBPS = ("2.6",)
_IBP = "inter.broker.protocol.version"

# The requests that brokers and admins send, with the versions that are answered.
SERVED: dict[int, tuple[int, int]] = {
    CONTROLLED_SHUTDOWN: (3, 3),
    CREATE_TOPICS: (2, 7),
    DELETE_TOPICS: (1, 6),
    CREATE_PARTITIONS: (0, 3),
    ELECT_LEADERS: (0, 2),
    ALTER_REASSIGNMENTS: (0, 0),
    LIST_REASSIGNMENTS: (0, 0),
    ALTER_PARTITION: (2, 3),
    ALLOCATE_PRODUCER_IDS: (0, 0),
}


def protocol_settings(overrides: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings of a gateway to brokers that were given an old ``inter.broker.protocol.version``."""
    given = [one.get(_IBP, "") for one in overrides]
    old = [version for version in WRITING_IBPS if any(text.startswith(version) for text in given)]
    return {_IBP: old[0]} if old else {}
