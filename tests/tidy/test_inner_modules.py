"""What the program uses of kafka-python's inner modules, which may change with any release.

``pyproject.toml`` allows the releases in which all of this holds.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from tests.support.rooms import ROOMS
from tests.tidy.test_tidy import name_of, python_files

INNER = ("kafka.record.", "kafka.protocol.", "kafka.net.")


def used_in(tree: ast.AST) -> Iterator[str]:
    """List what a file imports from inner modules, and the attributes of it that are named, as ``module:path``."""
    places: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(INNER):
            places |= {one.asname or one.name: f"{node.module}:{one.name}" for one in node.names}
    yield from places.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in places:
            yield f"{places[node.value.id]}.{node.attr}"


def is_there(place: str) -> bool:
    module, _, path = place.partition(":")
    try:
        held = importlib.import_module(module)
        for name in path.split("."):
            held = getattr(held, name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_installed_kafka_python_has_what_the_program_uses() -> None:
    used = {(place, name_of(path)) for path in python_files(*ROOMS) for place in used_in(_tree(path))}
    assert "kafka.record.util:encode_varint" in {place for place, _ in used}
    assert sorted((place, file) for place, file in used if not is_there(place)) == []


def test_what_vanished_is_named() -> None:
    text = (
        "from kafka.record.util import gone, calc_crc32c\nfrom kafka.record.default_records import DefaultRecordBase\n"
    )
    used = set(used_in(ast.parse(f"{text}DefaultRecordBase.HEADER_STRUCT\nDefaultRecordBase.GONE\n")))
    assert {place for place in used if not is_there(place)} == {
        "kafka.record.util:gone",
        "kafka.record.default_records:DefaultRecordBase.GONE",
    }


def _tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text())
