"""Draw a soak's samples: one small chart for each thing that must not grow."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.soak.growth import findings
from tests.soak.samples import Sample

COLUMNS = 3
CHART_WIDTH_IN, CHART_HEIGHT_IN = 4.0, 2.0


def draw(samples: Sequence[Sample], file: Path) -> None:
    """Write an SVG; a dashed line is the limit of what the last third of the run may reach."""
    # Text stays text, and the same samples give the same bytes.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "isrflow", "font.size": 8})
    found = findings(samples)
    rows = -(-len(found) // COLUMNS)
    figure = Figure(figsize=(COLUMNS * CHART_WIDTH_IN, rows * CHART_HEIGHT_IN), layout="constrained")
    minutes = [sample.at_s / 60 for sample in samples]
    batches = samples[-1].batches - samples[0].batches
    figure.suptitle(f"An engine under load for {minutes[-1]:.0f} minutes, {batches:,} batches")
    for place, finding in enumerate(found, start=1):
        axes = figure.add_subplot(rows, COLUMNS, place)
        axes.plot(minutes, [getattr(sample, finding.limit.series) for sample in samples], linewidth=0.8)
        axes.set_title(finding.limit.what, fontsize=8)
        if finding.is_judged:
            axes.axhline(finding.allowed, linestyle="--", linewidth=0.6, color="gray")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("minutes")
    figure.savefig(file, metadata={"Date": None})
