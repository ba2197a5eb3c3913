"""A topic's name, as an argument or as kafka-topics takes it."""

import functools
from collections.abc import Callable
from typing import Any

import click

_Command = Callable[..., Any]


def topic_argument(function: _Command) -> _Command:
    """Add the argument TOPIC to a command, which ``--topic TOPIC`` may give too, and pass it ``topic``."""

    @_named("TOPIC", "The same as the argument TOPIC.")
    @functools.wraps(function)
    def wrapped(topic: str | None, **rest: Any) -> Any:
        if topic is None:
            raise click.UsageError("Missing argument 'TOPIC'.")
        return function(topic=topic, **rest)

    return wrapped


def topics_argument(function: _Command) -> _Command:
    """Add arguments TOPIC to a command, any of which ``--topic TOPIC`` may give too, and pass it ``topics``."""

    @click.argument("names", nargs=-1, metavar="TOPIC...")
    @click.option("--topic", "named", multiple=True, metavar="TOPIC", help="The same as an argument TOPIC.")
    @functools.wraps(function)
    def wrapped(names: tuple[str, ...], named: tuple[str, ...], **rest: Any) -> Any:
        topics = tuple(dict.fromkeys((*names, *named)))
        if not topics:
            raise click.UsageError("Missing argument 'TOPIC...'.")
        return function(topics=topics, **rest)

    return wrapped


def topic_filter(what: str) -> Callable[[_Command], _Command]:
    """Add ``--topic TOPIC`` to a command, which an argument may give too, and pass it ``topic``: None is all topics.

    ``what`` is the help of the option.
    """
    return _named("[TOPIC]", what)


def _named(metavar: str, what: str) -> Callable[[_Command], _Command]:
    def added(function: _Command) -> _Command:
        @click.argument("topic", required=False, metavar=metavar)
        @click.option("--topic", "named", metavar="TOPIC", help=what)
        @functools.wraps(function)
        def wrapped(topic: str | None, named: str | None, **rest: Any) -> Any:
            if topic is not None and named is not None:
                raise click.UsageError("give the topic once: as an argument, or with --topic")
            return function(topic=named if topic is None else topic, **rest)

        return wrapped

    return added
