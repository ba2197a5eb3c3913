"""The note by which a standby's query learns that its job decides from now on.

The driver writes it after the claim, and the process that plans the query's batches looks for it.
"""

from pathlib import Path

import msgspec

from conf.whole_file import replace


class ClaimNote(msgspec.Struct, frozen=True):
    """What the query must know of the claim."""

    # Of the job's ``controller_started`` event.
    claim_seq: int
    # The last event of the last commit. The query takes in the state after that event, and decides from there on.
    committed_seq: int


def write_note(file: Path, note: ClaimNote) -> None:
    """Write the note, whole or not at all. Raises ``OSError``."""
    replace(file, msgspec.json.encode(note))


def read_note(file: Path) -> ClaimNote | None:
    """Read the note; None if it has not been written."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=ClaimNote)
    except FileNotFoundError:
        return None
