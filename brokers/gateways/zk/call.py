"""How the parts of a term use ZooKeeper's client, whose calls block."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Call(Protocol):
    """Makes a call that blocks, in the thread of the session."""

    def __call__(self, call: Callable[..., T], *given: Any, **named: Any) -> Awaitable[T]: ...
