"""A choice from many names."""

import difflib
from typing import Any

import click


class NearChoice(click.Choice[str]):
    """One of many names. A mistyped one is answered with the nearest, and not with all of them."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        # A name in another case is near, too.
        names = {name.casefold(): name for name in self.choices}
        near = difflib.get_close_matches(str(value).casefold(), names, n=1)
        if not near:
            return super().get_invalid_choice_message(value, ctx)
        return f"there is no {value!r}; did you mean {names[near[0]]!r}?"
