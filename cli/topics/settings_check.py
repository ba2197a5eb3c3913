"""A check that brokers of real Kafka can read the settings that a topic is to get.

The rules also refuse what brokers of Kafka 4 cannot read, but a command can suggest the nearest name. For brokers in
ZooKeeper mode, only this check and the requests of Kafka's clients keep out what they cannot read.
"""

from collections.abc import Mapping

import click

from bus.image import read_cluster
from cli.errors import Refused
from cli.options import existing_bus
from cli.parameters import distinct_pairs
from conf.near_names import addition
from conf.settings import Settings
from state.features import METADATA_VERSIONS, newest_metadata_version
from state.topic_settings import complaint_about, known_in

config_option = click.option(
    "--config",
    multiple=True,
    callback=distinct_pairs,
    metavar="KEY=VALUE",
    help="A setting of the topic. May be repeated.",
)


def check_readable(settings: Settings, config: Mapping[str, str]) -> None:
    """Raise ``Refused`` if a broker behind a gateway cannot read a setting, or ``Unreachable``."""
    if not config:
        return
    with existing_bus(settings) as bus:
        cluster = read_cluster(bus.image())
    behind = [broker for broker in cluster.brokers.values() if broker.is_kraft]
    if not behind and not cluster.gateways:
        return
    # Brokers in ZooKeeper mode are not behind their gateway, and all are of one release.
    level = METADATA_VERSIONS["3.9"]
    if behind:
        level = newest_metadata_version((feature for broker in behind for feature in broker.features), cluster.level)
    for name, value in sorted(config.items()):
        if complaint := complaint_about(name, value, level):
            raise Refused(f"INVALID_CONFIG: {complaint}{addition(name, known_in(level))}")
