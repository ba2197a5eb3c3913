"""The persistent map of metadata images, compared with a dict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.gateways.kraft.metadata.sliced_map import SlicedMap

# These keys share slices and branches, and two of them one hash.
KEYS = st.sampled_from([0, 1, 31, 32, 1_024, 2_048, -1, -2, "a", "b", ("a", 1)])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers()),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("update"), st.dictionaries(KEYS, st.integers())),
    )
)


@given(CHANGES)
def test_it_does_what_a_dict_does_and_no_earlier_map_changes(changes: list[tuple]) -> None:
    held, model = SlicedMap(), {}
    earlier = [(held, {})]
    for word, *operands in changes:
        if word == "delete" and operands[0] not in model:
            with pytest.raises(KeyError):
                held.delete(*operands)
            continue
        held, model = getattr(held, word)(*operands), dict(model)
        if word == "delete":
            del model[operands[0]]
        else:
            model.update([operands] if word == "set" else operands[0])
        earlier.append((held, model))
    for one, expected in earlier:
        assert dict(one.items()) == expected
        assert len(one) == len(expected)
        assert one == SlicedMap(expected)
        assert all(one[key] == one.get(key) == value and key in one for key, value in expected.items())
        assert all(key not in one and one.get(key, 7) == 7 for key in [0, 1_024, "a"] if key not in expected)


def test_maps_with_other_entries_differ() -> None:
    assert SlicedMap({"a": 1}) != SlicedMap({"a": 2})
    assert SlicedMap({"a": 1}) != SlicedMap({"a": 1, "b": 1})
    with pytest.raises(KeyError):
        SlicedMap({"a": 1})["b"]
