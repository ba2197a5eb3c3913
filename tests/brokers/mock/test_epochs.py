"""The leader epoch checkpoint: which entries stay, and what is read back."""

from pathlib import Path

import pytest

from brokers.mock.log.epochs import FILE, UNDEFINED, EndOffset, Entry, LeaderEpochs


def noted(path: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(path)
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


def test_an_epoch_replaces_those_that_contradict_it(tmp_path: Path) -> None:
    epochs = noted(tmp_path, (0, 0), (2, 5), (4, 9), (3, 12))
    assert epochs.entries == (Entry(0, 0), Entry(2, 5), Entry(3, 12))
    epochs.assign(2, 7)
    assert epochs.entries == (Entry(0, 0), Entry(2, 7))
    epochs.assign(6, 7)
    assert epochs.entries == (Entry(0, 0), Entry(6, 7))


def test_entries_are_read_back(tmp_path: Path) -> None:
    epochs = noted(tmp_path, (0, 0), (2, 5), (4, 9))
    assert LeaderEpochs(tmp_path).entries == epochs.entries
    epochs.truncate_from_end(9)
    assert LeaderEpochs(tmp_path).entries == (Entry(0, 0), Entry(2, 5))
    epochs.clear()
    assert LeaderEpochs(tmp_path).entries == ()


@pytest.mark.parametrize("text", ["", "0\n", "0\n2\n0 0\n", "0\n1\n0 0\n2 5\n", "0\n1\n0\n", "0\nx\n"])
def test_a_damaged_checkpoint_counts_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert LeaderEpochs(tmp_path).entries == ()


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (UNDEFINED, EndOffset(UNDEFINED, UNDEFINED)),
        (1, EndOffset(1, 3)),
        (2, EndOffset(2, 5)),
        (3, EndOffset(2, 5)),
        (4, EndOffset(4, 20)),
        (5, EndOffset(UNDEFINED, UNDEFINED)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(tmp_path: Path, asked: int, answer: EndOffset) -> None:
    assert noted(tmp_path, (2, 3), (4, 5)).end_offset_of(asked, log_end_offset=20) == answer
    assert LeaderEpochs(tmp_path / "none").end_offset_of(asked, 0) == EndOffset(UNDEFINED, UNDEFINED)
