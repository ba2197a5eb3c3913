"""The rules without repeated effects: each partition goes to the rule itself."""

import contextlib
from collections.abc import Hashable, Iterator
from typing import TypeVar

import pytest

from controller_logic.commit_alike import Alike, AlikeNew
from controller_logic.working_topic import WorkingTopic
from state.partition import Partition

T = TypeVar("T")


@contextlib.contextmanager
def by_reference() -> Iterator[None]:
    """Ask the rule about every partition while the block runs."""

    def commit(self: Alike[T], topic: WorkingTopic, before: Partition, *asked: Hashable) -> T:
        return self.rule(topic, before, *asked)

    def commit_new(self: AlikeNew, replicas: tuple[int, ...]) -> None:
        self.rule(self.topic, replicas)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alike, "commit", commit)
        patch.setattr(AlikeNew, "commit", commit_new)
        yield
