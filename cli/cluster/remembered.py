"""The description of a cluster's engine and gateways in its folder."""

import msgspec

from brokers.voters import Voter

FILE = "led.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's description on disk. ``delete`` removes the bus if it was created with the cluster."""

    bus: str
    made_bus: bool
    voters: tuple[Voter, ...]
    conf: str | None = None
    # The directory from which relative paths in ``conf`` count: where the cluster was made. None without ``conf``.
    directory: str | None = None
    engine_settings: tuple[str, ...] = ()
    # Whether gateways ask brokers for certificates.
    secure: bool = False
    # Where the ZooKeeper of brokers of Kafka 3.9 listens; None if they are in KRaft mode.
    zookeeper_port: int | None = None
    # The level of metadata.version with which the metadata log begins; None for the usual one.
    metadata_version: int | None = None
    # Whether the brokers have their own controller, so that no engine and no gateway is started.
    handed_back: bool = False
    # Whether the gateways take brokers over from their own controller when they start.
    adopts: bool = False
