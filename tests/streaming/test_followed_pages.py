"""What a standby takes in of a bus on Kafka: all pages, then those that changed, and events after the claim."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bus import pieces
from bus.interface import BusError, Image, Page
from bus.kafka.bus import KafkaBus
from bus.kafka.connection import Connection
from bus.kafka.mark import Mark
from bus.kafka.state_reader import read_state
from streaming import fan_out
from streaming.claim_note import ClaimNote, read_note, write_note
from streaming.sources import followed_pages
from streaming.sources.followed_pages import FollowedPages
from streaming.sources.kafka import KafkaReader
from tests.support.kafka_reader import reader_of
from tests.support.operators import events_in, keys_of_one_partition, pages_in
from tests.support.waiting import wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


@pytest.fixture
def active(kafka_url: str) -> Iterator[KafkaBus]:
    bus = KafkaBus(kafka_url)
    bus.claim("active", {}, 1)
    yield bus
    bus.close()


@pytest.fixture
def claim_note(tmp_path: Path) -> Path:
    return tmp_path / "claim_note"


def followed(bus: KafkaBus, quiet_ms: int = 0) -> FollowedPages:
    return FollowedPages(bus.address, bus.layouts(), quiet_ms)


def commit(bus: KafkaBus, *pages: Page) -> int:
    """Publish an event, decide it with ``pages``, and return its seq."""
    seq = bus.publish([EVENT])
    bus.commit(bus.held_claim.controller_epoch, seq, [], pages)
    return seq


def commit_readably(bus: KafkaBus, *pages: Page) -> int:
    """Commit ``pages`` as above, and wait until they can be read: a transaction's end comes to topics later."""
    seq = commit(bus, *pages)
    read_state(Connection(bus.address), Mark(through=seq, layouts=bus.layouts()))
    return seq


def planned(pages: FollowedPages, after: int) -> int:
    """Return up to where the next batch is, once there is one."""
    return wait_until(lambda: (through := pages.plan(after, None)) > after and through, "a batch of pages")


@pytest.mark.kafka_bus
def test_the_first_batch_has_all_pages_and_a_later_one_those_that_changed_in_their_newest_version(
    active: KafkaBus,
) -> None:
    commit(active, Page(0, 1, b"old"), Page(1, 1, b"kept"))
    first = commit(active, Page(0, 1, b"new"))
    pages = followed(active)
    try:
        assert planned(pages, 0) == first
        # Spark may ask for a batch more than once.
        for _ in range(2):
            assert pages.between(0, first) == [Page(0, 1, b"new"), Page(1, 1, b"kept")]
        with pytest.raises(BusError, match=f"from seq 0 to {first - 1} cannot be read again"):
            pages.between(0, first - 1)
        commit(active, Page(1, 2, b"once"))
        second = commit(active, Page(1, 2, b"twice"))
        taken: dict[tuple[int, int], bytes] = {}
        through = first
        while through != second:
            before, through = through, planned(pages, through)
            taken |= {(page.shard, page.page): page.body for page in pages.between(before, through)}
        assert taken == {(1, 2): b"twice"}
        assert pages.plan(second, None) == second
    finally:
        pages.close()


@pytest.mark.kafka_bus
def test_pages_longer_than_a_record_come_whole(active: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES_MAX", 10)
    commit(active, Page(0, 1, b"x" * 35))
    pages = followed(active)
    try:
        first = planned(pages, 0)
        assert pages.between(0, first) == [Page(0, 1, b"x" * 35)]
        commit(active, Page(0, 1, b"y" * 15))
        assert pages.between(first, planned(pages, first)) == [Page(0, 1, b"y" * 15)]
    finally:
        pages.close()


@pytest.mark.kafka_bus
def test_changes_wait_for_an_interval_a_silence_or_the_claim(active: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_ms = 0
    monkeypatch.setattr(followed_pages, "steady_ms", lambda: clock_ms)
    first = commit_readably(active, Page(0, 1, b"1"))
    pages = followed(active, quiet_ms=1_500)
    try:
        assert pages.plan(0, None) == first
        second = commit_readably(active, Page(0, 1, b"2"))
        clock_ms = 1_000
        assert pages.plan(first, None) == first
        clock_ms = 2_400
        assert pages.plan(first, None) == first
        # The active engine has been silent for 1.5 s.
        clock_ms = 2_600
        assert pages.plan(first, None) == second
        for _ in range(5):
            third = commit_readably(active, Page(0, 1, b"3"))
            assert pages.plan(second, None) == second
            clock_ms += 1_000
        assert pages.plan(second, None) == third
        # The claim waits for nothing, and its state may not be readable yet.
        fourth = commit(active, Page(0, 1, b"4"))
        assert pages.plan(third, ClaimNote(0, fourth)) == fourth
        assert pages.between(third, fourth) == [Page(0, 1, b"4")]
    finally:
        pages.close()


def noted(offset: dict[str, Any]) -> dict[str, Any]:
    """Return an offset as Spark notes it."""
    noted: dict[str, Any] = json.loads(json.dumps(offset))
    return noted


class Batch:
    """The batches of a reader, as Spark asks for them."""

    def __init__(self, reader: KafkaReader) -> None:
        self.reader = reader
        self.end = noted(reader.initialOffset())

    def latest(self) -> dict[str, Any] | None:
        """Return where the next batch ends; None if there is none."""
        found = noted(self.reader.latestOffset(self.end, self.reader.getDefaultReadLimit()))
        return None if found == self.end else found

    def next(self) -> list[pa.RecordBatch]:
        start, self.end = self.end, wait_until(self.latest, "a batch")
        (partition,) = self.reader.partitions(start, self.end)
        return list(self.reader.read(partition))


@pytest.mark.kafka_bus
def test_a_state_that_is_laid_out_again_is_followed_no_longer(active: KafkaBus) -> None:
    first = commit(active, Page(0, 1, b"1"))
    pages = followed(active)
    try:
        assert planned(pages, 0) == first
        active.replace_image(active.held_claim.controller_epoch, Image(first, [Page(0, 2, b"1")]))
        with pytest.raises(BusError, match="laid out again"):
            planned(pages, first)
    finally:
        pages.close()


@pytest.mark.kafka_bus
def test_a_source_gives_pages_until_the_claim_and_the_events_after_that_state_from_then_on(
    active: KafkaBus, kafka_url: str, tmp_path: Path, claim_note: Path
) -> None:
    through = commit(active, Page(0, 1, b"1"))
    reader = reader_of(active, tmp_path, claim_note_file=claim_note)
    batch = Batch(reader)
    assert pages_in(batch.next()) == [[Page(0, 1, b"1")]]
    assert batch.end["seq"] == through
    last = commit(active, Page(0, 1, b"2"))
    undecided = active.publish([EVENT + b" "])
    standby = KafkaBus(kafka_url)
    try:
        claim = standby.claim("standby", {}, 1)
        write_note(claim_note, ClaimNote(claim.seq, standby.committed_seq()))
        # A batch of pages may have been under way.
        assert pages_in(batch.next()) == [[Page(0, 1, b"2")]]
        assert batch.end["seq"] == last
        (events,) = events_in(batch.next())
        assert [(one.seq, one.is_claim) for one in events] == [(undecided, False), (claim.seq, True)]
        assert batch.end["seq"] == claim.seq
        assert batch.latest() is None
    finally:
        reader.stop()
        standby.close()


def test_slices_of_pages_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "BYTES_PER_ARROW_BATCH", 20)
    pages = [Page(0, number, b"x" * size) for number, size in enumerate([10, 10, 10, 90, 1])]
    found = pages_in(fan_out.rows_of_pages(pages, keys_of_one_partition(1)))
    assert [page for part in found for page in part] == pages
    assert [[page.page for page in part] for part in found] == [[0, 1], [2], [3], [4]]


def test_a_note_of_the_claim_is_read_whole_or_not_at_all(claim_note: Path) -> None:
    assert read_note(claim_note) is None
    write_note(claim_note, ClaimNote(8, 9))
    assert read_note(claim_note) == ClaimNote(8, 9)
    assert [file.name for file in claim_note.parent.iterdir()] == ["claim_note"]
