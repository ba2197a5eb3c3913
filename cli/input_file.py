"""A file that a command reads, or its standard input."""

from typing import Any

import click


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
