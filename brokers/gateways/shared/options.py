"""Command-line options that gateways share with the commands that start them and rebuild their logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_Option = Callable[[Callable[..., Any]], Callable[..., Any]]
GATEWAY_ID = click.IntRange(0, 2**31 - 1)


def cluster_id_option(purpose: str, *, required: bool = False) -> _Option:
    """Add ``cluster_id``, Kafka's id of the cluster."""
    return click.option("--cluster-id", required=required, metavar="ID", help=purpose)


def copies_option(name: str, purpose: str) -> _Option:
    """Add ``copies``: brokers' directories of the metadata log. ``purpose`` completes the help text."""
    return click.option(
        name,
        "copies",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="DIR",
        help=f"A broker's __cluster_metadata-0{purpose}",
    )
