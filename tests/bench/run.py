"""Run a benchmark by name: ``python -m tests.bench.run [NAME] [options]``, as ``make bench-NAME`` does."""

import sys
from collections.abc import Sequence

from tests.bench import acks, breakdown, failover, idle, latency, quick, whole

RUNS = {
    "all": whole.main,
    "quick": quick.main,
    "layers": breakdown.main,
    "latency": latency.main,
    "acks": acks.main,
    "idle": idle.main,
    "failover": failover.main,
}


def main(given: Sequence[str]) -> None:
    name, *rest = given if given and not given[0].startswith("-") else ("all", *given)
    run = RUNS.get(name)
    if run is None:
        raise SystemExit(f"there is no benchmark {name!r}; there are: {', '.join(RUNS)}")
    run(*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
