"""The Python that runs isrflow's processes.

The rooms have plain names. A ``state.py`` in the working directory must never be taken for ours, so no Python that we
start looks there.
"""

import os
import sys

# -P keeps the working directory off the path of one process. PYTHONSAFEPATH does the same for its children too.
PYTHON = (sys.executable, "-P")


def keep_paths_safe() -> None:
    """Keep the working directory off the path of all processes that this one starts."""
    os.environ["PYTHONSAFEPATH"] = "1"
