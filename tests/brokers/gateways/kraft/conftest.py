"""A leading gateway in this process, three brokers that the rules see as active, and a bus that is decided at once."""

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
    # If the gateway ended by itself, this raises its error.
    quorum.stop()


@pytest.fixture(scope="module")
def epochs(quorum: InProcessQuorum) -> dict[int, int]:
    """The broker epochs of brokers 1, 2 and 3, which are active."""
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
    """An empty bus, and the rules that decide what is published on it."""
    bus = DecidedBus(tmp_path / "bus.db")
    yield bus
    bus.close()
