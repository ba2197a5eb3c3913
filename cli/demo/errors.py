"""How a demo says that it cannot go on."""


class DemoError(Exception):
    """The demo cannot go on; the message says what happened, and where to look."""
