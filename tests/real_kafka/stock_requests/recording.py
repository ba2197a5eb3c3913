"""The recording of a story: what a stock controller sent in each block, and why a gateway sends something else.

silence 1
----
to 2,3:
LeaderAndIsr ...
---- gateway: It does so because ...
to 2,3:
UpdateMetadata ...
"""

from pathlib import Path
from typing import NamedTuple

from tests.scenarios.story import Block, Story, parse

FOLDER = Path(__file__).parent / "recorded"
OTHER = "---- gateway: "


class Kept(NamedTuple):
    """The requests in one block: Kafka's, the gateway's, and why they differ; empty if they are the same."""

    stock: str
    gateway: str
    why: str

    @property
    def text(self) -> str:
        return f"{self.stock}\n{OTHER}{self.why}\n{self.gateway}" if self.why else self.stock


def kept_in(block: Block) -> Kept:
    """Read what is kept below a block."""
    stock, found, rest = block.expected.partition(f"\n{OTHER}")
    if not found:
        return Kept(stock, stock, "")
    why, _, gateway = rest.partition("\n")
    return Kept(stock, gateway, why)


def recording_path(name: str) -> Path:
    return FOLDER / f"{name.replace('/', '.')}.txt"


def recording(name: str) -> Story:
    """Return a story in which the requests stand below each block."""
    return parse(name, recording_path(name).read_text("utf-8"))


def keep(story: Story, kept: list[Kept]) -> None:
    recording_path(story.name).write_text(story.retold([one.text for one in kept]), "utf-8")
