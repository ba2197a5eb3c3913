"""Play the load on every driver: creation, lost brokers, ISR storms, offsets, restarts."""

import argparse
from pathlib import Path

from bench.drivers import DRIVERS
from bench.load import Load
from bench.options import add_cluster, loads
from bench.play import rounds
from bench.report import OUT, measured

PARTITIONS = "10000,100000"
_DEFAULT = Load(partitions=0)


def main(*given: str) -> None:
    """Play the load on all drivers, and write a table."""
    parser = argparse.ArgumentParser(prog="bench", description="Play a load on the engine, the peer and a gateway.")
    add_cluster(parser, PARTITIONS)
    parser.add_argument("--rounds", type=int, default=3, help="how often each driver is started at each size")
    parser.add_argument("--drivers", default="engine,peer,gateway", help=f"with commas, of {', '.join(DRIVERS)}")
    parser.add_argument("--steps", default=",".join(_DEFAULT.steps), help="with commas; the first one is create")
    parser.add_argument("--storm", type=int, default=_DEFAULT.storm, help="partitions in a storm at most")
    parser.add_argument("--reporting", type=int, default=_DEFAULT.reporting, help="partitions that report at most")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write JSON and table")
    options = parser.parse_args(given)
    makes = {name: DRIVERS[name] for name in options.drivers.split(",")}
    shared = {"storm": options.storm, "reporting": options.reporting, "steps": options.steps.split(",")}
    played = loads(options, **shared)
    measured("all", given, lambda: rounds(played, makes, options.rounds), options.out)
