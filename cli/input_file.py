"""A file that an option names, and a file that a command reads, or its standard input."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


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
