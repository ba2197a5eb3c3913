"""A gateway that leads in this process, under the rules, with three brokers that look active."""

from collections.abc import Iterator

import pytest

from tests.support.controller_client import ControllerClient
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
