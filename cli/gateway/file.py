"""The settings of the gateway that starts with a file."""

import os
from collections.abc import Sequence
from pathlib import Path

from brokers.gateways.kraft import settings as kraft_settings
from brokers.gateways.zk import settings as zookeeper_settings
from conf.layers import flat_file

_ZOOKEEPER, _VOTERS = "zookeeper.connect", "controller.quorum.voters"


def is_gateways(file: Path) -> bool:
    """Return whether a settings file is a gateway's, and not an engine's. Raises ``SettingsError``."""
    return _VOTERS in flat_file(file)


def settings_in(
    file: Path, url: str | None = None, sets: Sequence[str] = ()
) -> kraft_settings.Settings | zookeeper_settings.Settings:
    """Return the settings of the gateway that starts with a file in this environment. Raises ``SettingsError``.

    A file that names a ZooKeeper is of a gateway to brokers in ZooKeeper mode.
    """
    load = zookeeper_settings.load if _ZOOKEEPER in flat_file(file) else kraft_settings.load
    return load(file, sets, bus=url, environment=os.environ)
