"""The options of benchmarks that create partitions: how many, on how many brokers, and who places the replicas."""

from argparse import ArgumentParser, Namespace
from typing import Any, get_args

import msgspec

from bench.load import Load, Placement

_DEFAULT = Load(partitions=0)


def add_cluster(parser: ArgumentParser, partitions: str, brokers: str = str(_DEFAULT.brokers)) -> None:
    """Add the options that describe one or more clusters."""
    parser.add_argument("--partitions", default=partitions, help=f"sizes, with commas (default {partitions})")
    parser.add_argument("--brokers", default=brokers, help=f"how many brokers, with commas (default {brokers})")
    parser.add_argument(
        "--placement",
        choices=get_args(Placement),
        default=_DEFAULT.placement,
        help="who places replicas: the controller, or the benchmark at random, from the same seed each time",
    )
    parser.add_argument("--partitions-per-topic", type=int, default=_DEFAULT.partitions_per_topic)


def loads(options: Namespace, **more: Any) -> list[Load]:
    """Return a load for each size on each number of brokers."""
    same = {"placement": options.placement, "partitions_per_topic": options.partitions_per_topic} | more
    sizes = [
        (int(size), int(brokers)) for size in options.partitions.split(",") for brokers in options.brokers.split(",")
    ]
    return [msgspec.convert({"partitions": size, "brokers": brokers} | same, Load) for size, brokers in sizes]
