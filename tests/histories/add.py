"""Keep a new history: ``python -m tests.histories.add NAME EVENTS "what it shows"``.

EVENTS has one event a line, in the order of seq, as ``isrflow replay`` reads them.
"""

import sys
from pathlib import Path

from controller_logic.replay import decide
from state.policy import Policy
from tests.histories.recorded import add, digest_of_all


def main(name: str, path: str, shows: str) -> None:
    """Add the events of a file and the decisions on them; print what is left to do."""
    history = add(name, shows, Path(path).read_bytes().removesuffix(b"\n").split(b"\n"))
    history.record([body for _, _, body in decide(history.events, Policy()).decisions])
    print(
        f"{len(history.events)} events, {len(history.decisions)} decisions; CHANGELOG.md is to note {digest_of_all()}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
