"""Whether brokers behind gateways can read the settings that a topic is to get.

Kafka's controller refuses what brokers cannot read, so they trust the metadata log: one that finds such a setting in it
does not make the topic's logs, and does not start again. The rules check only the settings that they act on. Gateways
check the others for Kafka's clients, and commands ask the engine without a gateway.
"""

import contextlib
from collections.abc import Mapping

from brokers.gateways.apis.topic_settings import complaint_about, known_in
from bus.image import read_image
from cli.errors import Refused
from cli.near_names import addition
from cli.options import existing_bus
from conf.settings import Settings
from state.broker import Broker
from state.features import METADATA_VERSION, METADATA_VERSIONS, USUAL_METADATA_VERSION


def check_readable(settings: Settings, config: Mapping[str, str]) -> None:
    """Raise ``Refused`` if a broker behind a gateway cannot read a setting, or ``Unreachable``."""
    if not config:
        return
    with contextlib.closing(existing_bus(settings)) as bus:
        cluster = read_image(bus.image()).cluster
    brokers = [broker for broker in cluster.brokers.values() if broker.behind_gateway]
    if not brokers and not cluster.gateways:
        return
    level = max(map(_metadata_version, brokers), default=USUAL_METADATA_VERSION)
    for name, value in sorted(config.items()):
        if complaint := complaint_about(name, value, level):
            raise Refused(f"INVALID_CONFIG: {complaint}{addition(name, known_in(level))}")


def _metadata_version(broker: Broker) -> int:
    """Return the newest metadata version that a broker supports. One of Kafka 3.9 in ZooKeeper mode tells none."""
    levels = (feature.max_version for feature in broker.features if feature.name == METADATA_VERSION)
    return next(levels, METADATA_VERSIONS["3.9"])
