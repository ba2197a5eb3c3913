"""Which answers belong to the requests of a command."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from cli import admin_requests
from cli.admin_requests import Ask, answers_to
from conf.loader import load
from state.decisions import Answer, Rejected
from tests.cli.worked_cluster import started

OTHERS = b'{"kind":"delete_topic","time_ms":1,"request_id":"another","topic":"others"}'


class Shared(EmbeddedBus):
    """A bus that divides what is published, as Kafka does with much, while others publish too."""

    def publish(self, events: Sequence[bytes]) -> int:
        last = 0
        for event in events:
            super().publish([OTHERS])
            last = super().publish([event])
            super().publish([OTHERS])
        return last


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    engine = started(tmp_path)
    yield tmp_path / "data" / "bus.db"
    engine.stop()


def test_others_events_may_come_between_the_requests(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_requests, "open_bus", lambda url, create: Shared(path))
    topics = ["a", "b", "c"]
    requests = [{"kind": "delete_topic", "topic": topic} for topic in topics]
    ask = Ask(load(None, [f"bus=sqlite:{path}"]), "text", False, 60_000)
    # The last one is no event, so it is rejected.
    answers = answers_to(ask, [*requests, {"kind": "delete_topic"}])
    assert [answer.topic for answer in answers if isinstance(answer, Answer)][:3] == topics
    assert [answer.field for answer in answers if isinstance(answer, Rejected)] == ["topic"]
    assert len(answers) <= 5
