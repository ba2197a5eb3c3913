"""The note by which a standby's query learns that its job decides from now on.

The driver writes it after the claim, and the process that plans the query's batches looks for it.
"""

from pathlib import Path

import msgspec


class Handover(msgspec.Struct, frozen=True):
    """What the query must know of the claim."""

    controller_epoch: int
    # Of the job's ``controller_started`` event.
    claim_seq: int
    # The last event of the last commit. The query takes in the state after that event, and decides from there on.
    committed_seq: int


def hand_over(file: Path, handover: Handover) -> None:
    """Write the note, whole or not at all. Raises ``OSError``."""
    unfinished = file.with_name(f"{file.name}.new")
    unfinished.write_bytes(msgspec.json.encode(handover))
    unfinished.rename(file)


def handed_over(file: Path) -> Handover | None:
    """Read the note; None if it has not been written."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Handover)
    except FileNotFoundError:
        return None
