"""How the parts of a term use ZooKeeper's client, whose calls block."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Call(Protocol):
    """What makes a call that blocks, in the session's thread."""

    def __call__(self, call: Callable[..., T], *given: Any, **named: Any) -> Awaitable[T]: ...
