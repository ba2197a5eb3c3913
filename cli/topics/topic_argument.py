"""A topic's name, as an argument or as kafka-topics takes it."""

import functools
from collections.abc import Callable
from typing import Any

import click


def topic_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument TOPIC to a command, which ``--topic TOPIC`` may give too, and pass it ``topic``."""

    @click.argument("topic", required=False, metavar="TOPIC")
    @click.option("--topic", "named", metavar="TOPIC", help="The same as the argument TOPIC.")
    @functools.wraps(function)
    def wrapped(topic: str | None, named: str | None, **rest: Any) -> Any:
        if topic is not None and named is not None:
            raise click.UsageError("give the topic once: as an argument, or with --topic")
        given = named if topic is None else topic
        if given is None:
            raise click.UsageError("Missing argument 'TOPIC'.")
        return function(topic=given, **rest)

    return wrapped
