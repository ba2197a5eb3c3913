"""The reasons why a gateway does not serve its log."""

from pathlib import Path


class StorageError(Exception):
    """The log on disk is damaged, or is not the translation of the decisions. The message says what to do."""


class DamagedError(StorageError):
    """Files of the log are missing or changed. If ``spare`` is set, the log can do without that file."""

    def __init__(self, what: str, spare: Path | None = None) -> None:
        super().__init__(what)
        self.spare = spare


class LackingError(StorageError):
    """The log lacks decisions that retention has removed from the bus."""
