"""The metrics that come from Spark's report on a batch."""

import json
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from streaming.batch_listener import BatchListener

PHASES_MS = {"latestOffset": 45, "addBatch": 130}
REPORT = {"numInputRows": 3, "durationMs": {"triggerExecution": 200, **PHASES_MS}}


@pytest.mark.parametrize(("watches", "duration_ms"), [(True, 155), (False, 200)])
def test_a_wait_for_news_is_no_part_of_a_batch_and_reading_events_is(watches: bool, duration_ms: int) -> None:
    metrics = Mock()
    progress = SimpleNamespace(json=lambda: json.dumps(REPORT))
    BatchListener(metrics, watches=watches).onQueryProgress(SimpleNamespace(progress=lambda: progress))
    metrics.batch_ended.assert_called_once_with(duration_ms=duration_ms, phases_ms=PHASES_MS, events=3)
