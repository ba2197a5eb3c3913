"""The nearest existing topic, which the refusal of an unknown topic adds."""

import functools

import click

from bus.image import read_image
from bus.interface import BusError
from cli.errors import Unreachable
from cli.options import existing_bus
from conf.near_names import addition
from conf.settings import Settings
from state.stored.codec import CodecError

# How many unknown topics get a hint. A request may name thousands, and a bus may have as many.
TOPICS_MAX = 10


class TopicHints:
    """The topics on a bus, read when the first unknown one is looked for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._found: dict[str, str] = {}

    def about(self, topic: str) -> str:
        """Return the end of a line that refuses ``topic``; empty if no name is near."""
        if topic not in self._found and len(self._found) < TOPICS_MAX:
            self._found[topic] = addition(topic, self._names)
        return self._found.get(topic, "")

    @functools.cached_property
    def _names(self) -> frozenset[str]:
        # The refusal matters more than the hint, so it stands alone if the bus can no longer be read.
        try:
            with existing_bus(self._settings) as bus:
                return frozenset(topic.topic for topic in read_image(bus.image()).topics)
        except (Unreachable, BusError, CodecError):
            return frozenset()


def hint_at(settings: Settings, topic: str) -> None:
    """Warn on standard error that a topic does not exist, if one with a similar name does."""
    if near := TopicHints(settings).about(topic):
        click.echo(f"There is no topic {topic!r}{near}", err=True)
