"""The versions of Kafka that isrflow runs and leads.

Another version needs a line in ``KAFKA_VERSIONS``, and its jars in the lock: ``make lock`` writes them.
"""

from typing import Literal, NamedTuple

Mode = Literal["kraft", "zookeeper"]


class KafkaVersion(NamedTuple):
    """A version of Kafka."""

    number: str
    # The sets of jars (``conf.jars``) of its nodes, and of the admin tools to use with it.
    jars: str
    tools: str = "kafka-tools"
    modes: tuple[Mode, ...] = ("kraft",)

    @property
    def release(self) -> str:
        """The release that the version belongs to: 4.1 for 4.1.0."""
        return self.number.rpartition(".")[0]


KAFKA_VERSIONS = {
    version.number: version
    for version in (
        # The last line of Kafka whose brokers know ZooKeeper.
        KafkaVersion("3.9.1", "zookeeper-broker", "zookeeper-tools", modes=("kraft", "zookeeper")),
        KafkaVersion("4.0.2", "kafka-broker-4.0"),
        KafkaVersion("4.1.0", "kafka-broker"),
        KafkaVersion("4.2.1", "kafka-broker-4.2"),
    )
}
# The default version of a new cluster.
KAFKA_VERSION = "4.1.0"
ZOOKEEPER_KAFKA_VERSION = "3.9.1"
