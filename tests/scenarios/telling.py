"""Tell a story: write its events, have a player decide them block by block, and show the results."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from bus.interface import Decided
from tests.scenarios import picture
from tests.scenarios.rendering import Rendering
from tests.scenarios.script import Script, Written
from tests.scenarios.story import Block, Story
from tests.scenarios.vocabulary import WORDS

NOTHING = "no decision"


class Player(Protocol):
    """A way to play a log. The log comes in blocks, which the player may cut into batches in any way."""

    def play(self, events: Sequence[tuple[int, bytes]]) -> Sequence[Decided]:
        """Decide a block's events, (seq, raw), and return the decisions on them."""
        ...

    def view(self) -> dict[str, Any]:
        """Describe the state after the last block (``state.view``)."""
        ...


class Scene(NamedTuple):
    """The events that a block's commands wrote, and what to show after them."""

    written: list[Written]
    charts: list[tuple[tuple[str, int], dict[int, int]]]
    introduced: list[str]
    described: list[str]


def scenes(story: Story) -> list[Scene]:
    """Write a story's events."""
    script = Script()
    return [_scene(script, block) for block in story.blocks]


def _scene(script: Script, block: Block) -> Scene:
    script.begin_block()
    for command in block.commands:
        script.quiet = False
        WORDS[command.word](script, command)
    charts = [(key, dict(script.ends[key])) for key in script.charts]
    return Scene(script.written, charts, script.introduced, script.described)


def tell(story: Story, player: Player) -> list[str]:
    """Return the text of each block as ``player`` plays it."""
    rendering = Rendering()
    return [_tell_scene(scene, player, rendering) for scene in scenes(story)]


def _tell_scene(scene: Scene, player: Player, rendering: Rendering) -> str:
    quiet = {event.seq for event in scene.written if event.quiet}
    decided = player.play([(event.seq, event.raw) for event in scene.written]) if scene.written else ()
    lines = [line for one in decided for line in rendering.tell(one.body, quiet=one.seq in quiet)]
    for key, ends in scene.charts:
        if key in rendering.partitions:
            named = f"{key[0]}-{key[1]} " if len(scene.charts) > 1 else ""
            lines += picture.chart(ends, rendering.watermarks.get(key, 0), rendering.partitions[key], named)
    shown = [*scene.introduced, *scene.described]
    if "brokers" in shown:
        lines.append(picture.broker_line(player.view()))
    if "acls" in shown:
        lines += picture.acl_lines(player.view())
    topics = [name for name in shown if name not in ("brokers", "acls")]
    if topics:
        lines += picture.partition_lines(player.view(), topics)
    return "\n".join(lines or [NOTHING])
