"""Read a story: a comment, then blocks of commands, ``----``, and their results."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
RULE = "----"


class Block(NamedTuple):
    """The lines above a rule (commands, and notes that begin with ``#``), and the text below it."""

    lines: tuple[str, ...]
    expected: str

    @property
    def commands(self) -> list["Command"]:
        return [Command.of(line) for line in self.lines if not line.startswith("#")]


class Command(NamedTuple):
    """One command: its word, the arguments in their order, and those of the form ``name=value``."""

    word: str
    arguments: tuple[str, ...]
    options: dict[str, str]
    rest: str

    @classmethod
    def of(cls, line: str) -> "Command":
        word, _, rest = line.partition(" ")
        parts = rest.split()
        options = dict(part.split("=", 1) for part in parts if "=" in part)
        return cls(word, tuple(part for part in parts if "=" not in part), options, rest.strip())


class Story(NamedTuple):
    """A story; its name is its path below the folder of stories."""

    name: str
    comment: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The story's text, as in its file."""
        return self.retold([block.expected for block in self.blocks])

    def retold(self, outputs: Iterable[str]) -> str:
        """Return the story's text with new outputs."""
        pairs = zip(self.blocks, outputs, strict=True)
        told = ["\n".join([*block.lines, RULE, output]) for block, output in pairs]
        return "\n".join([*self.comment, "\n\n".join(told), ""])


def parse(name: str, text: str) -> Story:
    """Read a story from its text; raise ``ValueError`` if it has no comment, or a block has no rule."""
    lines = text.splitlines()
    count = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if count == 0:
        raise ValueError(f"{name} does not begin with a comment that says what it shows")
    pieces = re.split(r"\n{2,}", "\n".join(lines[count:]).strip())
    return Story(name, tuple(lines[:count]), tuple(_block(name, piece.splitlines()) for piece in pieces))


def _block(name: str, lines: Sequence[str]) -> Block:
    if RULE not in lines:
        raise ValueError(f"{name}: no {RULE} below {lines[:1]}")
    place = lines.index(RULE)
    return Block(tuple(lines[:place]), "\n".join(lines[place + 1 :]))


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def all_stories() -> list[Story]:
    """Read every story, in order of name."""
    names = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.txt"))
    return [parse(name, path_of(name).read_text("utf-8")) for name in names]
