"""Options with a key and a value, such as the settings of a topic or of Kafka brokers."""

from collections.abc import Sequence

import click

from isrflow.masking import masked_value


def pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Read a repeated option ``KEY=VALUE``; a later one wins. Raises ``BadParameter`` that names a wrong one."""
    return dict(map(_pair, texts))


def distinct_pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Read a repeated option ``KEY=VALUE`` with each key once. Raises ``BadParameter`` that names a wrong one."""
    found: dict[str, str] = {}
    for key, value in map(_pair, texts):
        if key in found:
            raise click.BadParameter(f"{key} is given twice")
        found[key] = value
    return found


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"expected KEY=VALUE, got {masked_value(text)!r}")
    return key.strip(), value
