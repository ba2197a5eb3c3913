"""Kinds of options and arguments: files, choices from many names, and pairs of a key and a value."""

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from isrflow.masking import masked_value


def file_option(*names: str, metavar: str = "FILE", **rest: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option that names a file. ``rest`` is as of ``click.option``."""
    return click.option(*names, type=click.Path(path_type=Path, dir_okay=False), metavar=metavar, **rest)


class InputFile(click.File):
    """The path of a file of bytes, or ``-``."""

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except RuntimeError:
            # Click raises this if the process was started without standard input.
            self.fail("standard input is closed", param, ctx)


class NearChoice(click.Choice[str]):
    """One of many names. A mistyped one is answered with the nearest, and not with all of them."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        # A name in another case is near, too.
        names = {name.casefold(): name for name in self.choices}
        near = difflib.get_close_matches(str(value).casefold(), names, n=1)
        if not near:
            return super().get_invalid_choice_message(value, ctx)
        return f"there is no {value!r}; did you mean {names[near[0]]!r}?"


def pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Read a repeated option ``KEY=VALUE``; a later one wins. Raises ``BadParameter`` that names a wrong one."""
    return dict(map(_pair, texts))


def distinct_pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Read a repeated option ``KEY=VALUE`` with each key once. Raises ``BadParameter`` that names a wrong one."""
    found: dict[str, str] = {}
    for key, value in map(_pair, texts):
        if key in found:
            raise click.BadParameter(f"{key} is given twice")
        found[key] = value
    return found


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"expected KEY=VALUE, got {masked_value(text)!r}")
    return key.strip(), value
