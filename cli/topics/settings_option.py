"""Settings of a topic on the command line."""

import click

from cli.pairs_option import distinct_pairs

config_option = click.option(
    "--config",
    multiple=True,
    callback=distinct_pairs,
    metavar="KEY=VALUE",
    help="A setting of the topic. May be repeated.",
)
