"""The Python that isrflow's own processes run on, and the version of what they run.

The rooms have plain names. A ``state.py`` in somebody's working directory must never be taken for ours, so no Python
that we start looks there.
"""

import os
import sys
from importlib.metadata import version

VERSION = version("isrflow")
# -P leaves the working directory out of the path of one process, PYTHONSAFEPATH out of those that it starts too.
PYTHON = (sys.executable, "-P")


def keep_paths_safe() -> None:
    """Let all processes that this one starts leave their working directory out of their path."""
    os.environ["PYTHONSAFEPATH"] = "1"
