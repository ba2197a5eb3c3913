"""The newest decisions: grouped by event and reason for the list, and singly for each partition."""

from collections import deque
from collections.abc import Iterator
from itertools import islice

import msgspec

from sinks.web.seen import Seen

GROUPS_MAX = 200
KEPT_MAX = 50_000
KEPT_BYTES_MAX = 32 * 1024 * 1024

_decode = msgspec.json.Decoder(Seen).decode


class Group(msgspec.Struct):
    """The decisions of one kind that one event caused for one reason."""

    first: Seen
    count: int = 1


class Recent:
    """The newest decisions, within limits of count and bytes."""

    def __init__(self) -> None:
        self._groups: deque[Group] = deque(maxlen=GROUPS_MAX)
        # As JSON, because few are ever asked for.
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0

    def add(self, one: Seen, body: bytes) -> None:
        """Add a decision. It must be later than those added before."""
        newest = self._groups[-1] if self._groups else None
        if newest and _group_of(newest.first) == _group_of(one):
            newest.count += 1
        else:
            self._groups.append(Group(one))
        if one.topic:
            self._kept.append(body)
            self._kept_bytes += len(body)
            while len(self._kept) > KEPT_MAX or self._kept_bytes > KEPT_BYTES_MAX:
                self._kept_bytes -= len(self._kept.popleft())

    def groups(self, count: int) -> list[Group]:
        """Return the newest groups, newest first."""
        # Copied, because another thread adds groups.
        return [msgspec.structs.replace(group) for group in islice(reversed(list(self._groups)), count)]

    def of(self, topic: str, partition: int, count: int) -> list[Seen]:
        """Return the newest decisions on a partition, newest first."""
        return list(islice(self._on(topic, partition), count))

    def _on(self, topic: str, partition: int) -> Iterator[Seen]:
        names = b'"topic":"%s"' % topic.encode()
        numbered = b'"partition":%d,' % partition
        # Copied, because another thread adds decisions.
        for body in reversed(list(self._kept)):
            if names in body and numbered in body:
                one = _decode(body)
                if (one.topic, one.partition) == (topic, partition):
                    yield one


def _group_of(one: Seen) -> tuple[int, str, str, str]:
    return one.seq, one.kind, one.reason, one.state
