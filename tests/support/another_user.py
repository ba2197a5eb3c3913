"""Another user, whom files and directories can be closed to."""

import contextlib
import os
from collections.abc import Iterator

NOBODY = 65_534


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """Be a user without rights, because nothing is closed to root."""
    real, effective, saved = os.getresuid()
    if effective == 0:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(real, effective, saved)
