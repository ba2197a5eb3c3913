"""The versions of Kafka that isrflow runs and leads: of each release the newest.

Another version needs a line in ``KAFKA_VERSIONS``, and its jars in the lock, which ``deploy/lock_jars.py`` writes.
Another release needs its level in ``METADATA_VERSIONS`` (``state/features.py``) too.
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
        """The release that the version belongs to: 4.1 for 4.1.2."""
        return self.number.rpartition(".")[0]


KAFKA_VERSIONS = {
    version.number: version
    for version in (
        # The last line of Kafka whose brokers know ZooKeeper.
        KafkaVersion("3.9.2", "zookeeper-broker", "zookeeper-tools", modes=("kraft", "zookeeper")),
        KafkaVersion("4.0.2", "kafka-broker-4.0"),
        KafkaVersion("4.1.2", "kafka-broker"),
        KafkaVersion("4.2.2", "kafka-broker-4.2"),
        KafkaVersion("4.3.1", "kafka-broker-4.3"),
        KafkaVersion("4.4.0", "kafka-broker-4.4"),
    )
}
OF_RELEASE = {version.release: version for version in KAFKA_VERSIONS.values()}
# The default version of a new cluster.
KAFKA_VERSION = "4.1.2"
ZOOKEEPER_KAFKA_VERSION = "3.9.2"
