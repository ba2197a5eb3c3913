"""Every promise of docs/faults.md names an existing test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS_MIN = 30


def test_every_fault_names_a_test_that_is_there() -> None:
    lines = (ROOT / "docs" / "faults.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| fault |")]
    assert len(rows) > ROWS_MIN
    for row in rows:
        named = re.fullmatch(r"\| .+ \| .+ \| .+ \| `(tests/[a-z_/]+\.py)::(test_[a-z0-9_]+)` \|", row)
        assert named, row
        file = ROOT / named[1]
        assert file.exists(), row
        assert f"def {named[2]}(" in file.read_text(), row
