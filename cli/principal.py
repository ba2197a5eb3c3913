"""Who asks: the principal of a command's requests, in Kafka's form, TYPE:NAME."""

import getpass
import os
import socket
from typing import Any

import click

# As of a topic's name, so that the event stays small.
LENGTH_MAX = 249


def own_principal() -> str:
    """Return the principal of this process: its user and its host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run under an id without a name.
        user = str(os.getuid())
    return f"User:{user}@{socket.gethostname()}"[:LENGTH_MAX]


class _Principal(click.ParamType[str]):
    name = "principal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        kind, colon, name = text.partition(":")
        if not (kind and colon and name and text.isprintable() and len(text) <= LENGTH_MAX):
            self.fail(f"expected TYPE:NAME, such as User:alice, of at most {LENGTH_MAX} characters", param, ctx)
        return text


as_option = click.option(
    "--as",
    "principal",
    type=_Principal(),
    metavar="PRINCIPAL",
    help="Who asks, as events and decisions tell it: User:alice. Default: this process's user and host.",
)
