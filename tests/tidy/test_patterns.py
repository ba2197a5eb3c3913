r"""Patterns match only what they seem to.

``$`` also matches before a last newline, and ``\d`` matches digits of any script.
"""

import ast
import re

from tests.support.rooms import ROOMS
from tests.tidy.test_tidy import name_of, python_files

LOOSE = re.compile(r"(?<!\\)\$|\\[dws]")


def patterns_of(tree: ast.Module) -> list[tuple[int, str]]:
    """List the patterns that a module passes to ``re`` and to ``Meta``, except for multi-line ones."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [word.value for word in node.keywords if word.arg == "pattern"]
            match node.func:
                case ast.Attribute(value=ast.Name(id="re"), attr=called) if called != "escape":
                    given += node.args[:1] if "re.MULTILINE" not in ast.unparse(node) else []
            for piece in (piece for one in given for piece in ast.walk(one)):
                if isinstance(piece, ast.Constant) and isinstance(piece.value, str):
                    found.append((node.lineno, piece.value))
    return found


def test_no_pattern_matches_more_than_it_says() -> None:
    texts = {name_of(path): ast.parse(path.read_text()) for path in python_files(*ROOMS)}
    found = {f"{name}:{line}": text for name, tree in texts.items() for line, text in patterns_of(tree)}
    assert len(found) > 10
    assert {place: text for place, text in found.items() if LOOSE.search(text)} == {}


def test_a_loose_pattern_is_found() -> None:
    tree = ast.parse('import re\nre.compile("a$")\nMeta(pattern=rf"^{x}\\d+")\nre.findall("^a$", t, re.MULTILINE)')
    assert [line for line, text in patterns_of(tree) if LOOSE.search(text)] == [2, 3]
