"""Tests look at what is public: a private name is used only in the file that defines it."""

import ast
from pathlib import Path

import pytest

from tests.support.rooms import ROOMS
from tests.tidy.test_tidy import name_of, python_files

# Names that begin with an underscore although everybody may use them.
PUBLIC = {
    "_replace": "a method of every NamedTuple",
    "_exit": "os._exit",
    "_PARTITION_EOF": "a code of librdkafka's that confluent-kafka documents",
    "_AUTO_OFFSET_RESET": "another one",
}
EXCEPTIONS = {
    "tests/simulation/virtual_loop.py": "an event loop has to tell asyncio that it runs, and asyncio has no other way",
}
# Functions that take the name of an attribute as a text.
REPLACING = {"setattr", "delattr", "getattr", "object"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def defined_in(tree: ast.Module) -> set[str]:
    """List what a file defines: functions, classes, and all that it assigns."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return names


def private_names(tree: ast.Module) -> list[str]:
    """List the private names that a file uses and does not define, with their lines."""
    own = defined_in(tree)
    used: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name):
                used.append((node.lineno, name))
            case ast.ImportFrom(names=imported):
                used += [(node.lineno, one.name) for one in imported]
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[_, ast.Constant(str(name)), *_]):
                used += [(node.lineno, name)] if called in REPLACING else []
    return [f"{line}: {name}" for line, name in used if is_private(name) and name not in own]


def found_in(path: Path) -> list[str]:
    return private_names(ast.parse(path.read_text()))


def test_no_test_uses_a_private_name_of_another_file() -> None:
    found = {name_of(path): names for path in python_files("tests") if (names := found_in(path))}
    assert {name: names for name, names in found.items() if name not in EXCEPTIONS} == {}
    assert [name for name in EXCEPTIONS if name not in found] == [], "an exception without need"


def test_the_check_sees_the_private_names_of_rooms() -> None:
    assert any(found_in(path) for path in python_files(*ROOMS)), "the check sees no private name at all"


@pytest.mark.parametrize(
    "text",
    [
        "bus._connection()",
        "self._inherited",
        "from bus.embedded import _open",
        "monkeypatch.setattr(bus, '_open', None)",
        "patch.object(bus, '_open')",
        "bus._open = None",
    ],
)
def test_a_private_name_is_found(text: str) -> None:
    assert len(private_names(ast.parse(text))) == 1


@pytest.mark.parametrize(
    "text", ["def _own(): ...\nmodule._own()", "self._own = 1\nother._own", "entry._replace(a=1)", "a.__name__"]
)
def test_what_a_file_defines_and_what_is_public_is_left_alone(text: str) -> None:
    assert private_names(ast.parse(text)) == []
