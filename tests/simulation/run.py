"""Run histories from the command line: ``python -m tests.simulation.run --seed S --count N [--trace]``.

A row of a trace: seconds since the history began, who, what it is about, what happened.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from tests.simulation.simulation import Row, Simulation, Violated

MEANING = {
    "A1": "a log has no gap, and nothing at or above its end",
    "A3": "a high watermark is not above its log's end",
    "A4": "only whom its own view names acts as leader",
    "A5": "a follower is fetched for from its leader alone, a leader not at all",
    "A6": "a broker that runs was registered",
    "A7": "brokers are held to be what was said of them, by every shard",
    "A8": "the ISR is of assigned replicas, each once",
    "A10": "a leader is in the ISR",
    "A11": "the ISR is never empty, and a fenced member is its only one",
    "A12": "who is added or removed is assigned, and the target comes first",
    "A13": "who recovers is alone in the ISR, and was elected uncleanly",
    "A14": "replicas are distinct brokers, as many in each partition that a topic begins with",
    "B1": "epochs do not go back, and the partition epoch grows by one with each change",
    "B2": "the leader epoch does not grow without the partition epoch",
    "B3": "a leader epoch has one leader",
    "B4": "another leader has a greater leader epoch",
    "B5": "no broker goes back to an older decision",
    "B6": "an ISR is accepted only from the leader, in its present epochs",
    "B7": "who joins an ISR is active, and of the incarnation that the leader saw",
    "B8": "a leader has one ISR change outstanding",
    "B9": "a fetch counts in the leader's own epoch only",
    "B10": "broker epochs grow",
    "B11": "controller epochs do not go back",
    "B12": "brokers take in every decision, in order, and hold what was decided",
    "C4": "what is shown as committed was decided to be, and is on the whole ISR",
    "C5": "a high watermark was reached by all the ISR in the leader's epoch",
    "C6": "a leader's high watermark does not go back in its epoch",
    "C7": "the high watermark stands still below min.insync.replicas",
    "D1": "what is below a decided high watermark is on every member of the ISR, alike",
    "D2": "what a leader shows is on every member of the ISR that it knows, alike",
    "D3": "every member of the ISR holds all that was committed",
    "D4": "the leader holds all that was committed, and what was acknowledged is committed",
    "D5": "replicas agree below their high watermarks",
    "D6": "what a consumer read stays, as it was",
    "D7": "what was acknowledged is in some log",
    "D9": "only followers truncate, and nothing that was committed",
    "D10": "what was acknowledged is not refused, nor what was refused for good acknowledged",
    "E1": "an election is unclean when its leader was not in the ISR, and only where that is allowed",
    "E2": "no change is withheld, and the rules fail on no event",
    "E3": "what an idempotent producer sends is stored once, and in order",
    "L2": "every broker is unfenced in the end",
    "L3": "every live replica is in sync in the end",
    "L4": "every view is the engine's in the end",
    "L5": "every record is committed in the end, and every producer has its answer",
    "L6": "every log is the leader's in the end",
    "L7": "every reassignment comes to its end",
    "L8": "every partition has a leader in the end",
    "L9": "a deleted topic is gone in the end, and its logs",
    "L10": "preferred replicas lead in the end, where leaders are balanced",
    "crash": "no process ends by an error of its own",
    "end": "a history ends",
}


def history(seed: int, machine_crashes: bool, trace: bool) -> tuple[Simulation, Violated | None]:
    """Run one history; with ``trace`` each row is printed."""
    simulation = Simulation(seed, machine_crashes, _print if trace else None)
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
    """The outcome of one history."""

    seed: int
    is_violated: bool
    acknowledged: int
    consumed: int


def _ran(machine_crashes: bool, trace: bool, seed: int) -> Ran:
    simulation, violated = history(seed, machine_crashes, trace)
    clients = simulation.checkers.clients
    return Ran(seed, violated is not None, clients.acknowledged_count, clients.consumed_count)


def _all_of(seeds: range, machine_crashes: bool, trace: bool, jobs: int) -> Iterator[Ran]:
    """Run all, in ``jobs`` processes; a seed is the same history in each."""
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
    print(f"{len(ran)} histories in {took:.1f} s ({60 * len(ran) / took:.0f} a minute), {acknowledged} acknowledged")
    print(f"records, {consumed} consumed; {f'violations at seeds {failing}' if failing else 'no invariant violated'}")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
