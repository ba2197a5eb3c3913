"""A gateway that leads in this process with three brokers that look active, and a bus on which the rules decide."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.controller_client import ControllerClient
from tests.support.decided_bus import DecidedBus
from tests.support.gateway_in_process import InProcessQuorum


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(tmp_path_factory.mktemp("quorum"))
    yield quorum
    # A gateway that had ended by itself would say so here.
    quorum.stop()


@pytest.fixture(scope="module")
def epochs(quorum: InProcessQuorum) -> dict[int, int]:
    """The epochs of brokers 1, 2 and 3, which are active."""
    client = quorum.client()
    try:
        return quorum.join(client, 1, 2, 3)
    finally:
        client.close()


@pytest.fixture
def client(quorum: InProcessQuorum) -> Iterator[ControllerClient]:
    """A connection to the gateway that leads."""
    client = quorum.client()
    yield client
    client.close()


@pytest.fixture
def decided(tmp_path: Path) -> Iterator[DecidedBus]:
    """An empty bus, and the rules that decide what it takes."""
    bus = DecidedBus(tmp_path / "bus.db")
    yield bus
    bus.close()
