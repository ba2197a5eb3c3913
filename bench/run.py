"""Run a benchmark by name: ``python -m bench.run [NAME] [options]``, as ``make bench-NAME`` does."""

import signal
import sys
from collections.abc import Sequence

from bench import acks, breakdown, failover, idle, latency, quick, shadow, shadow_live, standby, sustained, whole

RUNS = {
    "all": whole.main,
    "quick": quick.main,
    "layers": breakdown.main,
    "latency": latency.main,
    "acks": acks.main,
    "idle": idle.main,
    "failover": failover.main,
    "shadow": shadow.main,
    "shadow-live": shadow_live.main,
    "standby": standby.main,
    "sustained": sustained.main,
}


def main(given: Sequence[str]) -> None:
    # Otherwise a benchmark that gets SIGTERM would leave its controllers running.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    name, *rest = given if given and not given[0].startswith("-") else ("all", *given)
    run = RUNS.get(name)
    if run is None:
        raise SystemExit(f"there is no benchmark {name!r}; there are: {', '.join(RUNS)}")
    run(*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
