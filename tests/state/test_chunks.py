"""Values go together while their sizes fit."""

import pytest

from state.chunks import chunks


@pytest.mark.parametrize(
    ("sizes", "count_max", "divided"),
    [
        ([], None, []),
        ([4, 6, 1], None, [[4, 6], [1]]),
        ([4, 7], None, [[4], [7]]),
        ([11, 1], None, [[11], [1]]),
        ([1, 11, 11, 1], None, [[1], [11], [11], [1]]),
        ([1, 1, 1, 1, 1], 2, [[1, 1], [1, 1], [1]]),
        ([9, 2, 1, 1], 2, [[9], [2, 1], [1]]),
    ],
)
def test_values_are_divided(sizes: list[int], count_max: int | None, divided: list[list[int]]) -> None:
    assert list(chunks([(size, size) for size in sizes], 10, count_max=count_max)) == divided
