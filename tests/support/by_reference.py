"""The rules without repeated effects: each partition goes to the rule itself."""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest

from controller_logic.commit_alike import Alike
from controller_logic.working_topic import WorkingTopic
from state.partition import Partition

T = TypeVar("T")


@contextlib.contextmanager
def by_reference() -> Iterator[None]:
    """Ask the rule about every partition while the block runs."""

    def commit(self: Alike[T], topic: WorkingTopic, before: Partition, *given: Any, **asked: Any) -> T:
        return self.rule(self.batch, topic, before, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alike, "commit", commit)
        yield
