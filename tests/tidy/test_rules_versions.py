"""New rules are in force from their version on, and not only after it.

Otherwise a log of exactly that version would be replayed differently.
"""

import ast
import re

from tests.tidy.test_tidy import name_of, python_files

VERSION = re.compile(r"(?!NEWEST_)[A-Z]+(_[A-Z]+)*_RULES")
AFTER_A_VALUE, BEFORE_A_VALUE = (ast.GtE, ast.Lt), (ast.LtE, ast.Gt)


def comparisons(tree: ast.AST) -> list[tuple[int, bool]]:
    """List the comparisons with a version of the rules: the line, and whether that version itself has the new rules."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                for side, allowed in ((right, AFTER_A_VALUE), (left, BEFORE_A_VALUE)):
                    if VERSION.fullmatch(ast.unparse(side)):
                        found.append((node.lineno, isinstance(operator, allowed)))
    return found


def test_rules_are_in_force_from_their_version_on() -> None:
    trees = {name_of(path): ast.parse(path.read_text()) for path in python_files("controller_logic", "state")}
    found = [(name, line, is_from) for name, tree in trees.items() for line, is_from in comparisons(tree)]
    assert len(found) > 20
    assert [f"{name}:{line}" for name, line, is_from in found if not is_from] == []


def test_a_comparison_that_leaves_the_version_itself_out_is_found() -> None:
    tree = ast.parse("a > X_RULES\na >= X_RULES\nX_RULES < a\nX_RULES <= a < Y_RULES\na <= Y_RULES\na > NEWEST_RULES\n")
    assert comparisons(tree) == [(1, False), (2, True), (3, False), (4, True), (4, True), (5, False)]
