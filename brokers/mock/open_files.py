"""How many files this process may have open: each segment of each log is one."""

import contextlib
import resource


def raise_limit() -> None:
    """Let this process open as many files as the system allows it, as a JVM does at its start."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Where the system refuses, the limit stays as it was.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
