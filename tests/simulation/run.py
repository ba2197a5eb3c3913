"""Run histories from the command line: ``python -m tests.simulation.run --seed S --count N [--trace]``.

A row of a trace has the seconds since the history began, the process, the subject, and what happened.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from conf.counted import counted
from tests.simulation.simulation import Row, Simulation, Violated

# With "None" a partition may stay without a leader.
STRATEGIES = ("", "Balanced", "Aggressive")
MEANING = {
    "A1": "a log has no gaps, and no record at or above its end",
    "A3": "a high watermark is not above its log's end",
    "A4": "a broker acts as leader only if its own view names it",
    "A5": "a follower has one fetcher, and a leader has none",
    "A6": "a running broker has registered",
    "A7": "a broker is unfenced exactly if a decision said so, in every shard",
    "A8": "the ISR has only assigned replicas, each once",
    "A9": "eligible replicas are assigned, and not in the ISR",
    "A10": "a leader is in the ISR",
    "A11": "the ISR is never empty, and a fenced member is its only member",
    "A12": "added and removed replicas are assigned, and the target comes first",
    "A13": "a recovering leader is alone in the ISR, and was elected uncleanly",
    "A14": "replicas are distinct, and all initial partitions of a topic have equally many",
    "B1": "epochs never decrease; each change raises the partition epoch by one",
    "B2": "the leader epoch never rises without the partition epoch",
    "B3": "a leader epoch has one leader",
    "B4": "a new leader has a greater leader epoch",
    "B5": "no broker returns to an older decision",
    "B6": "an ISR is accepted only from the leader, in its current epochs",
    "B7": "a replica that joins an ISR is active, and of the incarnation that the leader saw",
    "B8": "a leader has at most one outstanding ISR change",
    "B9": "a fetch counts only in the leader's own epoch",
    "B10": "broker epochs rise",
    "B11": "controller epochs never decrease",
    "B12": "brokers apply every decision, in order, and hold what was decided",
    "C4": "what is shown as committed was decided to be committed, and is on the whole ISR",
    "C5": "the whole ISR reached the high watermark, in the leader's epoch",
    "C6": "a leader's high watermark never decreases within its epoch",
    "C7": "the high watermark does not rise while the ISR is below min.insync.replicas",
    "D1": "records below a decided high watermark are the same on every member of the ISR",
    "D2": "records below the high watermark that a leader shows are the same on every member of its ISR",
    "D3": "every member of the ISR holds every committed record",
    "D4": "the leader holds every committed record, and every acknowledged record is committed",
    "D5": "replicas agree below their high watermarks",
    "D6": "what a consumer read never changes or disappears",
    "D7": "every acknowledged record is in some log",
    "D9": "only followers truncate, and in the ISR never a committed record",
    "D10": "no record is both acknowledged and finally refused",
    "E1": "an election is unclean exactly if its leader was not in the ISR, and only if that is allowed",
    "E2": "no change is withheld, and the rules fail on no event",
    "E3": "records of an idempotent producer are stored once, in order",
    "L2": "in the end every broker is unfenced",
    "L3": "in the end every live replica is in sync",
    "L4": "in the end every broker's view is the engine's",
    "L5": "in the end every record is committed, and every producer has its answer",
    "L6": "in the end every log equals the leader's",
    "L7": "in the end every reassignment has finished",
    "L8": "in the end every partition has a leader",
    "L9": "in the end a deleted topic is gone, and so are its logs",
    "L10": "in the end preferred replicas lead, if leaders are balanced",
    "crash": "no process ends with an error of its own",
    "end": "a history ends",
}


def history(
    seed: int, machine_crashes: bool, trace: bool, *, has_eligible: bool = False
) -> tuple[Simulation, Violated | None]:
    """Run one history; with ``trace`` each row is printed."""
    simulation = Simulation(seed, machine_crashes, _print if trace else None)
    if has_eligible:
        recovery = STRATEGIES[seed % len(STRATEGIES)]
        simulation.scenery = simulation.scenery._replace(eligible=True, recovery=recovery)
        # The last known leader may be elected uncleanly whatever the settings.
        simulation.checkers.unclean_allowed = True
    return simulation, simulation.run()


def _print(row: Row) -> None:
    print(row)


def explain(simulation: Simulation, seed: int, violated: Violated, machine_crashes: bool, trace: bool) -> None:
    """Print what was violated, the last rows, and how to see it again."""
    if not trace:
        print(*simulation.rows, sep="\n")
    print(f"\nseed {seed} violates {violated.invariant}: {MEANING.get(violated.invariant, '')}")
    print(f"  {violated.what}")
    more = " ARGS=--machine-crashes" if machine_crashes else ""
    print(f"again: make simulate SEED={seed} N=1{more}")


class Ran(NamedTuple):
    """A history's outcome."""

    seed: int
    is_violated: bool
    acknowledged: int
    consumed: int


def _ran(machine_crashes: bool, trace: bool, seed: int) -> Ran:
    simulation, violated = history(seed, machine_crashes, trace)
    clients = simulation.checkers.clients
    return Ran(seed, violated is not None, clients.acknowledged_count, clients.consumed_count)


def _all_of(seeds: range, machine_crashes: bool, trace: bool, jobs: int) -> Iterator[Ran]:
    """Run all seeds, in ``jobs`` processes. A seed gives the same history in each."""
    one = partial(_ran, machine_crashes, trace)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(one, seeds, chunksize=10)
        finally:
            pool.shutdown(cancel_futures=True)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--trace", action="store_true", help="print every row")
    parser.add_argument(
        "--machine-crashes", action="store_true", help="machines crash too, and lose what was not forced"
    )
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first violation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; with --trace, one")
    given = parser.parse_args()
    if given.count < 1 or given.jobs < 1:
        parser.error("--count and --jobs are 1 at least")
    return given


def main() -> int:
    """Run ``--count`` histories from ``--seed`` on; 1 when one violates an invariant."""
    given = _given()
    began, failing, ran = time.monotonic(), [], []
    seeds = range(given.seed, given.seed + given.count)
    for one in _all_of(seeds, given.machine_crashes, given.trace, 1 if given.trace else given.jobs):
        ran.append(one)
        if one.is_violated:
            failing.append(one.seed)
            simulation, violated = history(one.seed, given.machine_crashes, trace=False)
            if violated is not None:
                explain(simulation, one.seed, violated, given.machine_crashes, given.trace)
            if not given.keep_going:
                break
    took = time.monotonic() - began
    acknowledged, consumed = sum(one.acknowledged for one in ran), sum(one.consumed for one in ran)
    speed = f"{took:.1f} s ({60 * len(ran) / took:.0f} a minute)"
    print(f"{counted(len(ran), 'history', 'histories')} in {speed}, {acknowledged} acknowledged")
    print(f"records, {consumed} consumed; {f'violations at seeds {failing}' if failing else 'no invariant violated'}")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
