"""In two minutes under load nothing in an engine may grow, and growth is noticed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.soak.growth import LIMITS, Limit, findings
from tests.soak.run import soak, tell
from tests.soak.samples import Sample

MINUTES = 2.0
# As many batches a second as ``run_of`` has, in which a leak of one descriptor a batch is noticed.
SETTINGS = ("watermark.interval.ms=300",)
FLAT = Sample(0.0, 0, 22, 366, 44, 327, 134.0, 550.0, 744.0, 0.5, 325, 2.0, 4.0, 8.0, 13_000, 85.0)


def run_of(minutes: float, **growth_per_batch: float) -> list[Sample]:
    """Return a run of three batches a second that is flat, except in what ``growth_per_batch`` names."""
    samples = []
    for place in range(61):
        at_s = minutes * place
        batches = int(at_s * 3)
        grown = {name: getattr(FLAT, name) + batches * by for name, by in growth_per_batch.items()}
        samples.append(replace(FLAT, at_s=at_s, batches=batches, **grown))
    return samples


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.series)
def test_a_flat_run_passes_and_one_that_grows_does_not(limit: Limit) -> None:
    assert not any(finding.grew for finding in findings(run_of(60)))
    grown = run_of(60, **{limit.series: getattr(FLAT, limit.series) * 0.01})
    assert [finding.limit for finding in findings(grown) if finding.grew] == [limit]


def test_one_descriptor_a_batch_is_noticed_within_two_minutes() -> None:
    assert [f.limit.series for f in findings(run_of(MINUTES, jvm_fds=1)) if f.grew] == ["jvm_fds"]


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_nothing_grows_in_two_minutes(tmp_path: Path) -> None:
    samples = soak(tmp_path, MINUTES, SETTINGS)
    found = findings(samples)
    tell(samples, found)
    assert samples[-1].batches - samples[0].batches > 60 * MINUTES
    assert [str(finding) for finding in found if finding.grew] == []
