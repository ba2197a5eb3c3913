"""Cut links or the power of a cluster, and print the effects: ``python -m tests.faults.cuts led alone:40 minority``.

``KINDS`` has the kinds of clusters, and ``FAULTS`` the faults. The number is the length of a fault in seconds.
"""

import sys
import tempfile
from pathlib import Path

from tests.faults.cut_scenarios import SCENARIOS, running
from tests.faults.hosted_cluster import HostedCluster, LedCluster, OnKafkaBus, StockCluster
from tests.faults.hosted_zookeeper import OnZookeeper
from tests.faults.power_scenarios import POWER_LOSSES

KINDS: dict[str, type[HostedCluster]] = {
    "led": LedCluster,
    "bus": OnKafkaBus,
    "zookeeper": OnZookeeper,
    "stock": StockCluster,
}
FAULTS = SCENARIOS | POWER_LOSSES
SECONDS = 20.0


def main(kind: str, *wanted: str) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="isrflow-cuts-") as folder,
        running(KINDS[kind], Path(folder)) as (cluster, load),
    ):
        for one in wanted:
            name, _, seconds = one.partition(":")
            print(f"{kind} {name}: {FAULTS[name](cluster, load, float(seconds or SECONDS))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
