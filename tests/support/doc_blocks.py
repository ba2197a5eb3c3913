"""The blocks of code in documents, as readers paste them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Block(NamedTuple):
    """One fenced block."""

    document: str
    # The word behind the opening fence; empty for drawings and output.
    language: str
    text: str


def blocks() -> list[Block]:
    """List the fenced blocks of the README and of all documents."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
            found.append(Block(path.name, language, text))
    return found


def blocks_of(document: str, language: str) -> list[str]:
    """Return the texts of a document's blocks in one language."""
    return [block.text for block in blocks() if (block.document, block.language) == (document, language)]
