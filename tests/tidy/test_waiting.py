"""Each wait in a test names its condition, so that a time-out can show it."""

import ast

from tests.tidy.test_tidy import name_of, python_files


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_every_wait_names_what_it_waits_for() -> None:
    unnamed, count = [], 0
    for path in python_files("tests"):
        if name_of(path) == "tests/support/waiting.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case (
                    ast.Call(func=ast.Name(id="wait_until"), args=[_, what, *_])
                    | ast.Call(func=ast.Name(id="wait_until_equal"), args=[_, _, what, *_])
                ):
                    count += 1
                    unnamed += [] if is_text(what) else [f"{name_of(path)}:{node.lineno}"]
    assert count > 100
    assert unnamed == [], "wait_until(condition, what, timeout_s), of tests/support/waiting.py"
