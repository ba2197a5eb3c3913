"""Notes of brokers to their controller, each in a znode of its own."""

from collections.abc import Callable
from typing import TypeVar

import structlog

from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.znodes import ZnodeError

logger = structlog.get_logger()

T = TypeVar("T")


def take_notes(session: Session, folder: str, read: Callable[[str, bytes], T]) -> list[T]:
    """Read the notes below ``folder``, oldest first, and remove them. The session watches for the next one.

    A note that cannot be read is logged, and removed too. Raises ``ZookeeperError``.
    """
    found = []
    for name in session.children(folder, watch=True):
        path = f"{folder}/{name}"
        if (held := session.read(path)) is not None:
            try:
                found.append(read(path, held[0]))
            except ZnodeError as error:
                logger.warning("a note of a broker cannot be read", why=str(error))
        session.remove(path)
    return found
