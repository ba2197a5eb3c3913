"""In two minutes under load nothing in an engine may grow, and growth is noticed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.soak.growth import LIMITS, Limit, findings
from tests.soak.run import soak, tell
from tests.soak.samples import Sample

MINUTES = 2.0
# With topics that come and go, some 1.5 batches a second. Each costs CPU time, and a leak in one of three is noticed.
SETTINGS = ("watermark.interval.ms=1000", "tick.idle.interval.ms=1000")
# About a record for each partition between two ticks, so that there always are reports to settle.
RECORD_INTERVAL_S = 0.2
BATCHES_MIN = 120
BATCHES_HOUR = 10_800
FLAT = Sample(0.0, 0, 22, 366, 44, 327, 134.0, 550.0, 744.0, 0.5, 325, 2.0, 4.0, 8.0, 13_000, 85.0)


def run_of(minutes: float, batches: int, **growth_per_batch: float) -> list[Sample]:
    """Return a run that is flat, except in what ``growth_per_batch`` names."""
    samples = []
    for place in range(61):
        at_s = minutes * place
        through = batches * place // 60
        grown = {name: getattr(FLAT, name) + through * by for name, by in growth_per_batch.items()}
        samples.append(replace(FLAT, at_s=at_s, batches=through, **grown))
    return samples


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.series)
def test_a_flat_run_passes_and_one_that_grows_does_not(limit: Limit) -> None:
    assert not any(finding.grew for finding in findings(run_of(60, BATCHES_HOUR)))
    grown = run_of(60, BATCHES_HOUR, **{limit.series: getattr(FLAT, limit.series) * 0.01})
    assert [finding.limit for finding in findings(grown) if finding.grew] == [limit]


def test_one_descriptor_in_three_batches_is_noticed_within_two_minutes() -> None:
    assert [f.limit.series for f in findings(run_of(MINUTES, BATCHES_MIN, jvm_fds=1 / 3)) if f.grew] == ["jvm_fds"]


@pytest.mark.spark
@pytest.mark.mock_brokers
def test_nothing_grows_in_two_minutes(tmp_path: Path) -> None:
    samples = soak(tmp_path, MINUTES, SETTINGS, record_interval_s=RECORD_INTERVAL_S, batches_min=BATCHES_MIN)
    found = findings(samples)
    tell(samples, found)
    assert samples[-1].batches - samples[0].batches >= BATCHES_MIN
    assert [str(finding) for finding in found if finding.grew] == []
