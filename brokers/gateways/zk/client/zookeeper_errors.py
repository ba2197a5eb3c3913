"""What can go wrong with ZooKeeper."""


class ZookeeperError(Exception):
    """ZooKeeper cannot be reached, or refuses a call."""


class LostAnswerError(ZookeeperError):
    """The connection was lost before the answer came, so ZooKeeper may have carried the call out, or not."""


class RefusedWriteError(ZookeeperError):
    """ZooKeeper refused a transaction, because another process wrote meanwhile."""


class ForbiddenError(ZookeeperError):
    """ZooKeeper's ACLs forbid the call to this process."""


class MissingZnodeError(RefusedWriteError):
    """There is no such znode."""


class HasChildrenError(RefusedWriteError):
    """A znode to delete has children; ``number`` is the place of the write in its transaction."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class ControllerMovedError(RefusedWriteError):
    """Another process is the controller now."""
