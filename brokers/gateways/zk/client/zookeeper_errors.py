"""What can go wrong with ZooKeeper."""


class ZookeeperError(Exception):
    """ZooKeeper cannot be reached, or refuses what should be possible."""


class LostAnswerError(ZookeeperError):
    """The connection was lost before the answer came, so ZooKeeper may have done what it was asked, or not."""


class RefusedWriteError(ZookeeperError):
    """ZooKeeper refused a transaction, because somebody else wrote meanwhile."""


class ForbiddenError(ZookeeperError):
    """ZooKeeper's ACLs do not let this process do it."""


class MissingZnodeError(RefusedWriteError):
    """There is no such znode."""


class HasChildrenError(RefusedWriteError):
    """A znode to be deleted has children; ``number`` is the place of the write in its transaction."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class ControllerMovedError(RefusedWriteError):
    """Another process is the controller now."""
