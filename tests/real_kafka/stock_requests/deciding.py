"""What was decided about partitions, to compare it with what a story has below its blocks.

High watermarks are left out, because simulated brokers report no log ends.
"""

from collections.abc import Iterable, Iterator

from bus.embedded import EmbeddedBus
from tests.real_kafka.by_brokers import compared
from tests.real_kafka.stock_requests.player import is_played
from tests.scenarios.rendering import Rendering
from tests.scenarios.story import Block, Story
from tests.support.waiting import wait_until_equal

_LISTED = 1_000_000


def written_in(blocks: Iterable[Block]) -> list[str]:
    """Return the lines below blocks that are compared."""
    return [line for block in blocks for line in compared(block.expected) if _is_decided(line)]


def _is_decided(line: str) -> bool:
    return " leader=" not in line and " hw " not in line


def chapters(story: Story) -> Iterator[tuple[Block, list[str]]]:
    """Yield each block that is played, with the lines below it and below those after it that are not."""
    block, following = story.blocks[0], list[Block]()
    for one in story.blocks:
        if following and is_played(one):
            yield block, written_in(following)
            block, following = one, []
        following.append(one)
    yield block, written_in(following)


class Decided:
    """What is decided on a bus from now on."""

    def __init__(self, bus: EmbeddedBus) -> None:
        self._bus = bus
        self._since = bus.decided_seq()

    def lines(self) -> list[str]:
        rendering, shown = Rendering(), []
        for one in self._bus.decisions((0, -1), _LISTED):
            told = rendering.tell(one.body, quiet=False)
            shown += told if one.seq > self._since else []
        return compared("\n".join(shown))

    def check(self, written: list[str]) -> None:
        """Wait until the decisions are those that are written."""
        wait_until_equal(self.lines, written, "the decisions")
