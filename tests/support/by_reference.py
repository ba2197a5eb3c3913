"""The rules without repeated effects: each partition goes to the rule itself."""

import contextlib
from collections.abc import Iterator

import pytest

from controller_logic.commit_alike import Alike, AlikeNew
from controller_logic.working_topic import WorkingTopic
from state.partition import Partition


@contextlib.contextmanager
def by_reference() -> Iterator[None]:
    """Ask the rule about every partition while the block runs."""

    def commit(self: Alike, topic: WorkingTopic, before: Partition) -> bool:
        return bool(self.rule(topic, before))

    def commit_new(self: AlikeNew, replicas: tuple[int, ...]) -> None:
        self.rule(self.topic, replicas)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alike, "commit", commit)
        patch.setattr(AlikeNew, "commit", commit_new)
        yield
