"""Brokers that lost a log directory. They note it in ZooKeeper, and say which replicas were in it when they are asked.

A broker answers ``KAFKA_STORAGE_ERROR`` for each replica that it lost to any LeaderAndIsr request. So whoever notes a
failure is told everything again, also what it knows (``KafkaController.processLogDirEventNotification``).
"""

import structlog

from brokers.gateways.zk import znodes
from brokers.gateways.zk.session import Session
from brokers.gateways.zk.znodes import ZnodeError

logger = structlog.get_logger()


def noting_brokers(session: Session) -> set[int]:
    """Name the brokers that noted a failure since the last call, and remove the notes. Raises ``ZookeeperError``."""
    found = set()
    for name in session.children(znodes.LOG_DIR_EVENTS, watch=True):
        path = f"{znodes.LOG_DIR_EVENTS}/{name}"
        if (held := session.read(path)) is not None:
            try:
                found.add(znodes.noting_broker_in(path, held[0]))
            except ZnodeError as error:
                logger.warning("a note on a log directory cannot be read", why=str(error))
        session.remove(path)
    return found
