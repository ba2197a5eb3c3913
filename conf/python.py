"""The Python that runs isrflow's processes.

Our top-level packages have plain names. A ``state.py`` in the working directory must never be taken for ours, so no
Python that we start imports from there.
"""

import os
import sys

# -P keeps the working directory off the path of one process, and PYTHONSAFEPATH off its children's too.
PYTHON = (sys.executable, "-P")


def keep_paths_safe() -> None:
    """Keep the working directory off the path of all processes that this one starts."""
    os.environ["PYTHONSAFEPATH"] = "1"
