"""The levels of features."""

import pytest

from state.features import Levels, first_levels, not_supported


def test_a_log_begins_with_the_levels_of_its_metadata_version() -> None:
    others = {
        version: sorted(first_levels(version).items() - {("metadata.version", version)})
        for version in (21, 22, 24, 28, 29)
    }
    assert others == {
        21: [],
        22: [("group.version", 1)],
        24: [("group.version", 1), ("transaction.version", 2)],
        28: [("group.version", 1), ("share.version", 1), ("transaction.version", 2)],
        29: [("group.version", 1), ("share.version", 1), ("streams.version", 1), ("transaction.version", 2)],
    }


@pytest.mark.parametrize(
    ("levels", "level", "said"),
    [
        (None, 0, "it does not support the feature"),
        (None, 1, "it does not support the feature"),
        (Levels(0, 0), 1, "it does not support the feature"),
        (Levels(0, 0), 0, None),
        (Levels(1, 2), 0, "it supports levels 1 to 2"),
        (Levels(1, 2), 1, None),
        (Levels(1, 2), 2, None),
        (Levels(1, 2), 3, "it supports levels 1 to 2"),
    ],
)
def test_a_level_is_supported(levels: Levels | None, level: int, said: str | None) -> None:
    assert not_supported("it", levels, level) == said
