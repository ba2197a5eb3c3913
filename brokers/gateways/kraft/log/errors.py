"""What stops a gateway from serving its log."""


class StorageError(Exception):
    """The log on disk is damaged, or is not what the decisions tell; the message names both and what to do."""
