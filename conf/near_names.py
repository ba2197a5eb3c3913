"""Hints for an error about an unknown name: the nearest known name, or where to find all of them."""

import difflib
from collections.abc import Collection


def suggestion(name: str, names: Collection[str], otherwise: str) -> str:
    """Return the end of an error's sentence: the one of ``names`` that is nearest to ``name``, or ``otherwise``."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def addition(name: str, names: Collection[str]) -> str:
    """Return what follows an error about ``name``: the nearest of ``names``. It is empty if the name is one of them."""
    near = "" if name in names else suggestion(name, names, "")
    return f"; {near}" if near else ""
