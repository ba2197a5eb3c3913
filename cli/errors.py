"""Exit codes: 0 done, 1 the cluster refused, 2 wrong use, 3 unreachable or stale, 4 superseded."""

import click


class Refused(click.ClickException):
    """The cluster refused the request."""

    exit_code = 1


class WrongUse(click.ClickException):
    """The command line, or a file that it names, is wrong."""

    exit_code = 2


class Unreachable(click.ClickException):
    """Something that the command needs is missing, unreadable or stale."""

    exit_code = 3


class Superseded(click.ClickException):
    """A newer job took over. This one ended as planned, and must not be restarted."""

    exit_code = 4
