"""Wait for brokers that have yet to become active, as after the start of a cluster."""

import time

import click
import msgspec

from bus.image import read_clusters
from cli.admin_requests import Ask
from cli.options import existing_bus
from conf.counted import counted
from conf.settings import Settings
from state.cluster import Cluster

POLL_INTERVAL_S = 0.25


def with_brokers(ask: Ask, replication_factor: int | None) -> Ask:
    """Wait until a topic of this size can be created, and return ``ask`` with the time that is left of its time-out.

    Without ``replication_factor`` it is the cluster's default. Waiting ends at once if it could not help: because all
    registered brokers are active, or are too few.
    """
    deadline_s = time.monotonic() + ask.timeout_ms / 1000
    is_told = False
    while not ask.dry_run and (lacking := _lacking(_cluster(ask.settings), replication_factor)):
        if time.monotonic() > deadline_s:
            break
        if not is_told:
            click.echo(f"Waiting for brokers to become active: {lacking}.", err=True)
            is_told = True
        time.sleep(POLL_INTERVAL_S)
    left_ms = max(1_000, round((deadline_s - time.monotonic()) * 1000))
    return msgspec.structs.replace(ask, timeout_ms=min(ask.timeout_ms, left_ms))


def _cluster(settings: Settings) -> Cluster:
    """Return the cluster as last committed; an empty one before the first commit."""
    with existing_bus(settings) as bus:
        return next(iter(read_clusters(bus.image())), Cluster())


def _lacking(cluster: Cluster, replication_factor: int | None) -> str:
    """Return what the cluster lacks for now; empty if waiting cannot help."""
    wanted = cluster.policy.default_replication_factor if replication_factor is None else replication_factor
    brokers = cluster.brokers.values()
    active = sum(1 for broker in brokers if broker.is_active)
    # Brokers of Kafka 4 may get replicas while they are fenced, as long as any broker is active.
    usable = active + sum(1 for broker in brokers if broker.is_kraft and not broker.is_active) if active else 0
    if usable >= wanted or (brokers and len(brokers) < wanted):
        return ""
    return f"{counted(active, 'is', 'are')} active, and {wanted} would do"
