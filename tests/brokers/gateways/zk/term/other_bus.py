"""A cluster in ZooKeeper whose gateways are on another bus for a while, and why their terms do not begin."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.gateways.zk.term.bus_note import OtherBusError
from brokers.gateways.zk.term.leadership import Leadership
from bus.embedded import EmbeddedBus
from tests.brokers.gateways.zk.conftest import POLICY
from tests.support.rules_engine import RulesEngine
from tests.support.znode_cluster import ZnodeCluster


@contextmanager
def other_bus(cluster: ZnodeCluster, path: Path) -> Iterator[None]:
    """Let the rules decide on another bus, and the cluster's gateways be on it."""
    engine, former = RulesEngine(), cluster.bus
    engine.start(path, **POLICY)
    cluster.bus = EmbeddedBus(path)
    try:
        yield
    finally:
        engine.stop()
        cluster.bus.close()
        cluster.bus = former


def refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the reasons are added for which a term does not begin."""
    begin, found = Leadership.begin, list[str]()

    async def noting(self: Leadership) -> None:
        try:
            await begin(self)
        except OtherBusError as error:
            found.append(str(error))
            raise

    monkeypatch.setattr(Leadership, "begin", noting)
    return found


async def nothing() -> None:
    """Add nothing to what is there."""
