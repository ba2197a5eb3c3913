"""The cluster whose links the tests of one file cut."""

from collections.abc import Iterator

import pytest

from tests.faults.cut_scenarios import running
from tests.faults.hosted_cluster import HostedCluster
from tests.faults.load import Load


@pytest.fixture(scope="module")
def led(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HostedCluster, Load]]:
    """A cluster of the kind that the file names (``CLUSTER``), and the load of its clients."""
    with running(request.module.CLUSTER, tmp_path_factory.mktemp("cluster")) as found:
        yield found
