"""The quick benchmark: each step's CPU, divided by that of the reference loop, beside the same figures of releases.

    make bench-quick ARGS="[--partitions N] [--engine] [--keep]"

A ratio of CPU times depends little on the machine and on other work there. ``--engine`` also plays a small load on the
engine with Spark. ``--keep`` stores the ratios as those of this release.
"""

import argparse
from importlib.metadata import version
from pathlib import Path

import msgspec

from conf.settings import Settings
from tests.bench.breakdown import measure
from tests.bench.drivers import engine
from tests.bench.load import Load
from tests.bench.machine import facts, machine
from tests.bench.play import one_round

RELEASES = Path(__file__).with_name("releases.json")
PARTITIONS = 20_000
RUNS = 3
ENGINE_LOAD = Load(
    partitions=2_000, session_ms=6_000, idle_s=10.0, steps=("create", "idle", "one ISR", "fence", "return")
)


class Kept(msgspec.Struct, frozen=True):
    """The figures of one release."""

    machine: str
    partitions: int
    # By step: its CPU seconds divided by those of the reference loop.
    ratios: dict[str, float]


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="quick", description="Compare CPU with a reference loop and with releases.")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--engine", action="store_true", help="also start the engine with its Spark")
    parser.add_argument("--keep", action="store_true", help="store the ratios as those of this release")
    options = parser.parse_args(given)
    settings = Settings()
    reference_s = machine().reference_cpu_s
    costs = measure(Load(partitions=options.partitions), RUNS, settings.shards, settings.pages)
    ratios = {cost.step: round(cost.total_s / reference_s, 3) for cost in costs}
    if options.engine:
        played = one_round("engine", engine, ENGINE_LOAD)
        ratios |= {f"engine: {step}": round(took.cpu_s / reference_s, 3) for step, took in played}
    releases = kept()
    same = {name: one for name, one in releases.items() if one.partitions == options.partitions}
    print(f"{options.partitions:,} partitions, {facts()}; the reference loop took {reference_s:.2f} s of CPU")
    print(f"{'step':<26} {'this run':>9}" + "".join(f" {name:>9} {'by it':>6}" for name in same))
    for step, ratio in ratios.items():
        shown = [(one.ratios.get(step), one) for one in same.values()]
        columns = "".join(f" {then:9.3f} {ratio / then:6.2f}" if then else f" {'':9} {'':6}" for then, _ in shown)
        print(f"{step:<26} {ratio:9.3f}{columns}")
    if options.keep:
        held = releases.get(version("isrflow"))
        # Steps that were not played now keep their stored ratios.
        ratios = (held.ratios if held is not None and held.partitions == options.partitions else {}) | ratios
        releases[version("isrflow")] = Kept(facts(), options.partitions, ratios)
        RELEASES.write_bytes(msgspec.json.format(msgspec.json.encode(releases)) + b"\n")


def kept() -> dict[str, Kept]:
    """Read the stored figures of all releases."""
    return msgspec.json.decode(RELEASES.read_bytes(), type=dict[str, Kept]) if RELEASES.exists() else {}
