"""The quick benchmark: each step's CPU, divided by that of the reference loop, beside the same figures of releases.

    make bench-quick ARGS="[--partitions N] [--brokers N,...] [--placement random] [--engine] [--keep]"

A ratio of CPU times depends little on the machine and on other work there. ``--engine`` also plays a small load on the
engine with Spark. ``--keep`` stores the ratios as those of this release.
"""

import argparse
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bench.breakdown import measure
from bench.drivers import engine
from bench.load import Load
from bench.machine import facts, machine
from bench.options import add_cluster, loads
from bench.play import one_round
from conf.settings import Settings

RELEASES = Path(__file__).with_name("releases.json")
PARTITIONS = "20000"
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
    add_cluster(parser, PARTITIONS)
    parser.add_argument("--engine", action="store_true", help="also start the engine with its Spark")
    parser.add_argument("--keep", action="store_true", help="store the ratios as those of this release")
    options = parser.parse_args(given)
    played = loads(options)
    if options.keep and (len(played) > 1 or not _is_of_releases(played[0])):
        parser.error("--keep stores the ratios of one size on as many brokers as by default, without --placement")
    reference_s = machine().reference_cpu_s
    for load in played:
        ratios = _ratios(load, reference_s, with_engine=options.engine)
        print(
            f"{load.partitions:,} partitions, {load.brokers} brokers, {load.placement} placement, {facts()}; "
            f"the reference loop took {reference_s:.2f} s of CPU"
        )
        print("\n".join(_compared(load, ratios)), flush=True)
        if options.keep:
            _keep(load, ratios)


def _ratios(load: Load, reference_s: float, *, with_engine: bool) -> dict[str, float]:
    settings = Settings()
    [costs] = measure([load], RUNS, settings.shards, settings.pages)
    ratios = {cost.step: round(cost.total_s / reference_s, 3) for cost in costs}
    if with_engine:
        small = replace(ENGINE_LOAD, brokers=load.brokers, placement=load.placement)
        ratios |= {
            f"engine: {step}": round(took.cpu_s / reference_s, 3) for step, took in one_round("engine", engine, small)
        }
    return ratios


def _is_of_releases(load: Load) -> bool:
    """Return whether the load differs in its size alone from those whose figures are stored."""
    return load == Load(partitions=load.partitions)


def _compared(load: Load, ratios: Mapping[str, float]) -> Iterator[str]:
    """Write a table of the ratios, beside those of releases at the same load."""
    is_known = _is_of_releases(load)
    same = {name: one for name, one in kept().items() if is_known and one.partitions == load.partitions}
    yield f"{'step':<26} {'this run':>9}" + "".join(f" {name:>9} {'by it':>6}" for name in same)
    for step, ratio in ratios.items():
        shown = [one.ratios.get(step) for one in same.values()]
        columns = "".join(f" {then:9.3f} {ratio / then:6.2f}" if then else f" {'':9} {'':6}" for then in shown)
        yield f"{step:<26} {ratio:9.3f}{columns}"


def _keep(load: Load, ratios: dict[str, float]) -> None:
    releases = kept()
    held = releases.get(version("isrflow"))
    # Steps that were not played now keep their stored ratios.
    ratios = (held.ratios if held is not None and held.partitions == load.partitions else {}) | ratios
    releases[version("isrflow")] = Kept(facts(), load.partitions, ratios)
    RELEASES.write_bytes(msgspec.json.format(msgspec.json.encode(releases)) + b"\n")


def kept() -> dict[str, Kept]:
    """Read the stored figures of all releases."""
    return msgspec.json.decode(RELEASES.read_bytes(), type=dict[str, Kept]) if RELEASES.exists() else {}
