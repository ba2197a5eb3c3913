"""The limits on a server's connections: in total, per host, and before they are authenticated."""

import asyncio
from collections import Counter
from typing import Any

import structlog

logger = structlog.get_logger()

_Task = asyncio.Task[Any]


class Admission:
    """The open connections of one server, each with the host that it comes from.

    A new connection is refused if there are too many in all or of its host. If too many connections are not
    authenticated yet, the new one stays. Instead the oldest of these is closed, from the host that has most of them. So
    a host that opens many and says nothing ends only its own.
    """

    def __init__(self, *, total_max: int, host_max: int, unauthenticated_max: int) -> None:
        self._total_max = total_max
        self._host_max = host_max
        self._unauthenticated_max = unauthenticated_max
        self._hosts: dict[_Task, str] = {}
        self._of_host: Counter[str] = Counter()
        # The oldest first.
        self._unauthenticated: dict[_Task, str] = {}

    @property
    def tasks(self) -> list[_Task]:
        return list(self._hosts)

    def enter(self, task: _Task, host: str, *, is_authenticated: bool) -> bool:
        """Note a new connection. Return whether it may stay."""
        if len(self._hosts) >= self._total_max:
            logger.warning("connection refused", limit=self._total_max)
            return False
        if self._of_host[host] >= self._host_max:
            logger.warning("connection refused", host=host, limit_of_host=self._host_max)
            return False
        self._hosts[task] = host
        self._of_host[host] += 1
        if not is_authenticated:
            if len(self._unauthenticated) >= self._unauthenticated_max:
                self._end_one()
            self._unauthenticated[task] = host
        return True

    def _end_one(self) -> None:
        most = Counter(self._unauthenticated.values()).most_common(1)[0][0]
        oldest = next(task for task, host in self._unauthenticated.items() if host == most)
        del self._unauthenticated[oldest]
        oldest.cancel()

    def authenticated(self, task: _Task) -> None:
        """Note that a connection has been authenticated."""
        self._unauthenticated.pop(task, None)

    def leave(self, task: _Task) -> None:
        """Forget a connection."""
        self._unauthenticated.pop(task, None)
        host = self._hosts.pop(task)
        self._of_host[host] -= 1
        if not self._of_host[host]:
            del self._of_host[host]
