"""Run a gateway between real brokers and the bus."""

import click

from cli.lazy_group import LazyGroup


@click.group("gateway", cls=LazyGroup, package="cli.gateway", names=("kraft", "zookeeper"))
def command() -> None:
    """Run a gateway between real brokers and the bus.

    'isrflow cluster up' starts gateways by itself. conf/gateway-reference.toml lists all settings, and
    conf/profiles/gateway.toml is a file to begin with.

    \b
    Examples:
      isrflow gateway kraft --conf gateway.toml
      isrflow gateway zookeeper --conf gateway.toml
    """
