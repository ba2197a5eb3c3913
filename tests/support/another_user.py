"""A user without rights, for tests of files and directories that this user may not open."""

import contextlib
import os
from collections.abc import Iterator

NOBODY = 65_534


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """Become a user without rights for the block, because root may open everything."""
    real, effective, saved = os.getresuid()
    if effective == 0:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(real, effective, saved)
