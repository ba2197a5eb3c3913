"""The error of a demo that cannot continue."""


class DemoError(Exception):
    """The demo cannot continue. The message says what happened, and where to look."""
