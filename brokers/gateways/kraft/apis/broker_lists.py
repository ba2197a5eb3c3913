"""The settings of brokers that are lists, each with Kafka's default (``KafkaConfig`` of Kafka 3.9 to 4.4).

They depend on the release of the brokers. ``tests/real_kafka`` compares them with Kafka's own.
"""

from collections.abc import Mapping

from state.features import METADATA_VERSIONS

_REPORTERS, _ASSIGNORS, _PROTOCOLS = (
    "metric.reporters",
    "group.consumer.assignors",
    "group.coordinator.rebalance.protocols",
)
_SHARE_ASSIGNORS = "group.share.assignors"
_OF_4_1 = {
    "controller.quorum.bootstrap.servers": "",
    "controller.quorum.voters": "",
    _ASSIGNORS: "uniform,range",
    _PROTOCOLS: "classic,consumer,streams",
    _SHARE_ASSIGNORS: "simple",
    "kafka.metrics.reporters": "",
    "log.cleanup.policy": "delete",
    _REPORTERS: "org.apache.kafka.common.metrics.JmxReporter",
    "process.roles": "",
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.principal.to.local.rules": "DEFAULT",
    "sasl.oauthbearer.expected.audience": "",
    "ssl.cipher.suites": "",
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
}
_OF_4_2 = _OF_4_1 | {
    "advertised.listeners": "",
    "config.providers": "",
    "controller.listener.names": "",
    "early.start.listeners": "",
    "listeners": "PLAINTEXT://:9092",
    "log.dir": "/tmp/kafka-logs",
    "log.dirs": "",
}
_OF_4_3 = _OF_4_2 | {"cordoned.log.dirs": ""}
_OF_4_4 = _OF_4_3 | {"group.streams.assignors": "sticky", "group.streams.rack.aware.assignment.tags": ""}
_OF_4_0 = {name: value for name, value in _OF_4_1.items() if name != _SHARE_ASSIGNORS} | {
    _PROTOCOLS: "classic,consumer"
}
_BEFORE_4 = "org.apache.kafka.coordinator.group.assignor"
_OF_3_9 = _OF_4_0 | {
    _ASSIGNORS: f"{_BEFORE_4}.UniformAssignor,{_BEFORE_4}.RangeAssignor",
    _PROTOCOLS: "classic",
    _REPORTERS: "",
    "zookeeper.ssl.cipher.suites": "",
    "zookeeper.ssl.enabled.protocols": "",
}
_LISTS = {"3.9": _OF_3_9, "4.0": _OF_4_0, "4.1": _OF_4_1, "4.2": _OF_4_2, "4.3": _OF_4_3, "4.4": _OF_4_4}
_UP_TO = [(METADATA_VERSIONS[release], lists) for release, lists in _LISTS.items()]


def broker_lists_in(metadata_version: int) -> Mapping[str, str]:
    """Return the lists among brokers' settings, each with the value that Kafka takes where nothing is set."""
    # A level between two releases has the settings of the later one.
    return next((lists for level, lists in _UP_TO if metadata_version <= level), _OF_4_4)
