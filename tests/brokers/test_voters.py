"""The list of voters as text, as in ``controller.quorum.voters``."""

import pytest

from brokers.voters import Voter, text_of, voters_of


def test_voters_are_read_as_brokers_have_them() -> None:
    assert voters_of("101@b:2, 100@::1:1") == (Voter(100, "::1", 1), Voter(101, "b", 2))


@pytest.mark.parametrize("text", ["100@h:9093", "1@[::1]:65535", "1@h:1,2@h:2"])
def test_voters_are_read_as_they_are_written(text: str) -> None:
    assert text_of(voters_of(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "100", "h:9093", "1@h", "100@:1", "x@h:1", "100@h:p", "1@h:0", "1@h:99999", "3000000000@h:1", "1@h:1\n2@g:2"],
)
def test_an_invalid_voter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a voter"):
        voters_of(text)


def test_a_voter_is_listed_once() -> None:
    with pytest.raises(ValueError, match="names a voter twice"):
        voters_of("1@h:1,1@g:2")
