"""How a command ends: 0 done, 1 the cluster said no, 2 wrong use, 3 cannot reach or stale, 4 superseded."""

import click


class Refused(click.ClickException):
    """The cluster said no."""

    exit_code = 1


class WrongUse(click.ClickException):
    """What was typed, or a file that was named, is not as it must be."""

    exit_code = 2


class Unreachable(click.ClickException):
    """What the command needs is not there, cannot be read, or is too old."""

    exit_code = 3


class Superseded(click.ClickException):
    """A newer job took over: this one ended as planned, and is not to be started again."""

    exit_code = 4
