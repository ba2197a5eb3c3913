"""What the refusal of an unknown topic adds: the nearest topic that is there."""

import functools

import click

from bus.image import read_image
from bus.interface import BusError
from cli.errors import Unreachable
from cli.options import existing_bus
from conf.near_names import addition
from conf.settings import Settings
from state.codec import CodecError

# So many topics are looked for. A request may name thousands, and a bus have as many.
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
        # The refusal is what matters, so it is said without a hint if the bus cannot be read any more.
        try:
            with existing_bus(self._settings) as bus:
                return frozenset(topic.topic for topic in read_image(bus.image()).topics)
        except (Unreachable, BusError, CodecError):
            return frozenset()


def hint_at(settings: Settings, topic: str) -> None:
    """Say on standard error that there is no such topic now, if there is one with a similar name."""
    if near := TopicHints(settings).about(topic):
        click.echo(f"There is no topic {topic!r}{near}", err=True)
