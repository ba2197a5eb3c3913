"""Settings of a topic on the command line."""

from collections.abc import Sequence

import click


def _pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    pairs = dict(text.split("=", 1) for text in texts if "=" in text)
    if len(pairs) != len(texts):
        raise click.BadParameter("expected KEY=VALUE, each key once")
    return pairs


config_option = click.option(
    "--config", multiple=True, callback=_pairs, metavar="KEY=VALUE", help="A setting of the topic. May be repeated."
)
