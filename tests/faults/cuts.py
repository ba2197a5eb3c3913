"""Cut links of a cluster, and print the effects: ``python -m tests.faults.cuts led alone:40 minority``.

``KINDS`` has the kinds of clusters, and ``SCENARIOS`` the cuts. The number is the length of a cut in seconds.
"""

import sys
import tempfile
from pathlib import Path

from tests.faults.cut_scenarios import SCENARIOS, running
from tests.faults.hosted_cluster import HostedCluster, LedCluster, OnKafkaBus, StockCluster
from tests.faults.hosted_zookeeper import OnZookeeper

KINDS: dict[str, type[HostedCluster]] = {
    "led": LedCluster,
    "bus": OnKafkaBus,
    "zookeeper": OnZookeeper,
    "stock": StockCluster,
}
SECONDS = 20.0


def main(kind: str, *wanted: str) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="isrflow-cuts-") as folder,
        running(KINDS[kind], Path(folder)) as (cluster, load),
    ):
        for one in wanted:
            name, _, seconds = one.partition(":")
            print(f"{kind} {name}: {SCENARIOS[name](cluster, load, float(seconds or SECONDS))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
