"""A count of one has the singular."""

from conf.counted import counted


def test_one_has_its_own_words() -> None:
    assert [counted(count, "node") for count in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
    assert [counted(count, "history", "histories") for count in (1, 2)] == ["1 history", "2 histories"]
