"""What a setting's value must be, in words."""

from typing import Any, Literal, get_args, get_origin

import msgspec


def expected(wanted: Any, error: msgspec.ValidationError) -> str:
    """Return what was expected of a value that did not convert to the type ``wanted``."""
    if get_origin(wanted) is Literal:
        return f"expected one of {', '.join(one or '(empty)' for one in get_args(wanted))}"
    described = [meta.description for meta in getattr(wanted, "__metadata__", ()) if meta.description]
    if described:
        return f"expected {described[0]}"
    if wanted is bool:
        return "expected true or false"
    # The type that was found is dropped, because the message shows the value instead.
    return str(error).partition(" - at ")[0].partition(", got")[0].replace("`", "").replace("Expected", "expected")
