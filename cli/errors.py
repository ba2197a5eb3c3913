"""Exit codes: 0 done, 1 the cluster refused, 2 wrong use, 3 unreachable or stale, 4 superseded, 130 Ctrl-C."""

from typing import IO, Any

import click

from isrflow.masking import masked


class _Reported(click.ClickException):
    """An error that is reported in one line. Passwords in URLs are not shown."""

    def __init__(self, message: str) -> None:
        super().__init__(masked(message))


class Refused(_Reported):
    """The cluster refused the request."""

    exit_code = 1


class WrongUse(_Reported):
    """The command line, a file that it names, or this release for the level of the bus, is wrong."""

    exit_code = 2


class Unreachable(_Reported):
    """Something that the command needs is missing, unreadable or stale."""

    exit_code = 3


class Superseded(_Reported):
    """A newer job took over. This job ended as planned, and must not be restarted."""

    exit_code = 4


class Interrupted(click.ClickException):
    """Ctrl-C ended the command. The exit code is a shell's for SIGINT."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("Aborted!")

    def show(self, file: IO[Any] | None = None) -> None:
        # The empty line ends the one on which a terminal shows ^C.
        click.echo("\nAborted!", file=file, err=file is None)
