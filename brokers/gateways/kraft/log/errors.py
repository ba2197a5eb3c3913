"""What stops a gateway from serving its log."""

from pathlib import Path


class StorageError(Exception):
    """The log on disk is damaged, or is not what the decisions tell; the message names both and what to do."""


class DamagedError(StorageError):
    """Files of the log are missing or hold other bytes than were written; ``spare`` is one it can do without."""

    def __init__(self, what: str, spare: Path | None = None) -> None:
        super().__init__(what)
        self.spare = spare


class LackingError(StorageError):
    """The log lacks what decisions came to that retention has removed from the bus."""


class UnknownFormatError(StorageError):
    """The decisions are to be written down in a format that this code does not have."""
