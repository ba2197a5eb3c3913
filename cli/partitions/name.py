"""The name of a partition on the command line: ``orders-0``."""

from typing import NamedTuple

import click

from cli.committed import Committed
from cli.errors import Refused
from conf.counted import counted
from state.partition import Partition, Topic


class PartitionName(NamedTuple):
    """A topic's name and a partition's number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def find(self, found: Committed) -> tuple[Topic, Partition]:
        """Return the topic and the partition. Raises ``Refused`` if there is none."""
        topic = found.topic(self.topic)
        self.check(topic)
        return topic, topic.partitions[self.partition]

    def check(self, topic: Topic) -> None:
        """Raise ``Refused`` if ``topic``, which has the name's topic, has no such partition."""
        count = len(topic.partitions)
        if self.partition >= count:
            held = counted(count, f"partition, {topic.topic}-0", f"partitions, 0 to {count - 1}")
            raise Refused(f"topic {topic.topic} has {held}: there is no {self}.")


class _PartitionType(click.ParamType[PartitionName]):
    name = "partition"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> PartitionName:
        if isinstance(value, PartitionName):
            return value
        topic, dash, number = str(value).rpartition("-")
        if not (topic and dash and number.isascii() and number.isdecimal() and len(number) < 10):
            raise click.BadParameter(f"{value!r} is not a partition: expected a topic and a number, such as orders-0")
        return PartitionName(topic, int(number))


PARTITION = _PartitionType()
