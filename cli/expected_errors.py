"""Errors that a command may end with, as one line and an exit code."""

import contextlib
from collections.abc import Iterator
from typing import NoReturn

import click

from bus.interface import BusError, FencedError
from cli.errors import Interrupted, Refused, Unreachable, WrongUse
from cli.extras import missing_extra, not_installed
from conf.jars import JarsError
from conf.java import JavaError
from conf.layers import SettingsError
from isrflow.masking import masked
from state.stored.codec import CodecError, LevelError

# An error quotes so many characters of what is wrong.
_QUOTED_MAX = 200


@contextlib.contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Raise Ctrl-C in the block as the error that click reports with its exit code. Click's own is 1."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted from error


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Raise an expected error of the block as the one that click reports."""
    try:
        yield
    except click.ClickException as error:
        # Click quotes what it does not understand.
        said = error.format_message()
        if masked(said) == said:
            raise
        raise click.UsageError(masked(said), getattr(error, "ctx", None)) from None
    except (SettingsError, LevelError) as error:
        raise WrongUse(str(error)) from error
    except FencedError as error:
        raise Refused(str(error)) from error
    except (BusError, CodecError, JarsError, JavaError) as error:
        raise Unreachable(str(error)) from error
    except ModuleNotFoundError as error:
        extra = missing_extra(error)
        if extra is None:
            raise
        raise not_installed(error, extra) from error
    except UnicodeEncodeError as error:
        _say_not_text(error)
    except OSError as error:
        said = error.strerror or str(error)
        raise Unreachable(f"{error.filename}: {said}" if error.filename else said) from error


def _say_not_text(error: UnicodeEncodeError) -> NoReturn:
    # Only the command line and the environment may have bytes that are no text.
    if error.reason != "surrogates not allowed":
        raise error
    raise WrongUse(f"{error.object[:_QUOTED_MAX]!r} is not UTF-8.") from error
