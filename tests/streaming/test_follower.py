"""When a standby follows the state, and when it gives that up. Runs without Spark."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Claim
from conf.settings import Settings
from streaming import follower
from streaming.checkpoint import BUS_FILE, SPARK_FILE, has_batches, settle
from streaming.checkpoint_lock import CheckpointLock, Holder, checkpoint_lock
from streaming.claim_note import ClaimNote, read_note
from streaming.follower import FREE_MS, LOOK_LATE_MS, PAUSE_MS, Follower
from streaming.sources.embedded import EmbeddedSource
from streaming.standby import LOOK_INTERVAL_MS
from tests.support.scripted_queries import Query

EPOCH = 1


class Standby:
    """A follower whose clock and queries a test controls, and what it needs."""

    def __init__(self, directory: Path, bus: EmbeddedBus, lock: CheckpointLock) -> None:
        self.bus, self.lock = bus, lock
        self.checkpoint = directory / "checkpoint"
        self.note = directory / "claim_note"
        self.now_ms = 0
        self.queries: list[Query] = []
        self.settings = Settings(bus=f"sqlite:{bus.path}", checkpoint_dir=str(self.checkpoint))
        self.refuse: list[Exception] = []
        self.directory = directory

    def start_query(
        self,
        session: Any,
        bus: Any,
        settings: Any,
        overrides: Any,
        commit: Callable[[Sequence[bytes]], None],
        **how: Any,
    ) -> Query:
        assert how == {"claim_note": self.note}
        if self.refuse:
            raise self.refuse.pop()
        self.queries.append(Query(self.checkpoint, commit))  # type: ignore[arg-type]
        return self.queries[-1]

    def follower(self) -> Follower:
        session: Any = None
        return Follower(session, self.bus, self.settings, self.lock, self.directory)

    def look(self, following: Follower, after_ms: int, epoch: int = EPOCH) -> bool:
        """Look until some time has passed, as often as a standby does, and say whether the state is followed then."""
        until_ms = self.now_ms + after_ms
        while True:
            following.look(epoch)
            if self.now_ms >= until_ms:
                return following.is_ready()
            self.now_ms = min(until_ms, self.now_ms + LOOK_INTERVAL_MS)

    def decide(self) -> None:
        """Decide all events, as the active engine does."""
        self.bus.commit(self.bus.claimed_epoch(), self.bus.last_seq(), [], [])


@pytest.fixture
def standby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standby]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    claim = bus.claim("active", {}, 1)
    bus.commit(EPOCH, claim.seq, [], [])
    with checkpoint_lock(tmp_path / "checkpoint", Holder.of(bus, "bus.db")) as lock:
        standby = Standby(tmp_path, bus, lock)
        monkeypatch.setattr(follower, "steady_ms", lambda: standby.now_ms)
        monkeypatch.setattr(follower, "start_query", standby.start_query)
        monkeypatch.setattr(EmbeddedSource, "has_pages", True)
        yield standby
    bus.close()


def test_a_standby_follows_once_the_checkpoint_has_been_free_for_a_while(standby: Standby) -> None:
    following = standby.follower()
    with checkpoint_lock(standby.checkpoint, Holder.of(standby.bus, "bus.db")) as active:
        assert active.take()
        assert not standby.look(following, 3 * FREE_MS)
        active.release()
        assert not standby.look(following, FREE_MS - LOOK_INTERVAL_MS)
        # A job that decides without the lock has taken it.
        assert active.take()
        assert not standby.look(following, LOOK_INTERVAL_MS)
        active.release()
        assert not standby.look(following, FREE_MS - LOOK_INTERVAL_MS)
        # While this process stood still, such a job may have had it.
        standby.now_ms += LOOK_LATE_MS + 1
        assert not standby.look(following, FREE_MS - LOOK_INTERVAL_MS)
        assert standby.look(following, LOOK_INTERVAL_MS)
        assert not active.take()
    assert len(standby.queries) == 1


def checkpoint_with_a_batch(standby: Standby) -> None:
    Query(standby.checkpoint, lambda outcomes: None).batch(0, 1)
    (standby.checkpoint / SPARK_FILE).touch()


@pytest.mark.parametrize("whose", ["this bus's", "another program's"])
def test_a_former_checkpoint_is_moved_aside(standby: Standby, whose: str) -> None:
    if whose == "this bus's":
        settle(standby.checkpoint, standby.bus, 1)
    checkpoint_with_a_batch(standby)
    following = standby.follower()
    assert standby.look(following, FREE_MS)
    assert not standby.queries[0].began_with_batches
    assert has_batches(standby.checkpoint.with_name("checkpoint.aside"))


def test_a_checkpoint_that_only_took_in_pages_is_removed_and_one_that_was_moved_aside_before_it_stays(
    standby: Standby,
) -> None:
    settle(standby.checkpoint, standby.bus, 1)
    checkpoint_with_a_batch(standby)
    following = standby.follower()
    assert standby.look(following, FREE_MS)
    checkpoint_with_a_batch(standby)
    standby.queries[0].fail("the bus is gone")
    assert standby.look(following, PAUSE_MS + 2 * FREE_MS)
    assert not standby.queries[1].began_with_batches
    assert (standby.checkpoint.with_name("checkpoint.aside") / BUS_FILE).exists()


def test_other_files_in_the_place_of_the_checkpoint_stay(standby: Standby) -> None:
    standby.checkpoint.mkdir()
    (standby.checkpoint / "of somebody else").touch()
    assert standby.look(standby.follower(), FREE_MS)
    assert (standby.checkpoint / "of somebody else").exists()


@pytest.mark.parametrize("lacks", ["a source of pages", "a checkpoint on this machine", "a state"])
def test_a_standby_that_cannot_follow_leaves_the_lock_alone(
    standby: Standby, lacks: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if lacks == "a source of pages":
        monkeypatch.setattr(EmbeddedSource, "has_pages", False)
    if lacks == "a checkpoint on this machine":
        standby.settings = Settings(bus=standby.settings.bus, checkpoint_dir="hdfs://somewhere/checkpoint")
    if lacks == "a state":
        standby.bus = EmbeddedBus(tmp_path / "empty.db")
    following = standby.follower()
    assert not standby.look(following, FREE_MS)
    assert standby.lock.is_free()
    assert not standby.queries


def test_a_new_claim_ends_it_until_that_job_has_decided_because_it_may_need_the_checkpoint(standby: Standby) -> None:
    following = standby.follower()
    assert standby.look(following, FREE_MS)
    standby.bus.claim("successor", {}, 1)
    assert not standby.look(following, 0, epoch=EPOCH + 1)
    assert not standby.queries[0].isActive
    assert standby.lock.is_free()
    assert not standby.look(following, 10 * FREE_MS, epoch=EPOCH + 1)
    standby.decide()
    assert standby.look(following, LOOK_INTERVAL_MS, epoch=EPOCH + 1)


def test_a_claim_in_the_last_moment_leaves_the_checkpoint_to_its_job(standby: Standby) -> None:
    settle(standby.checkpoint, standby.bus, 1)
    checkpoint_with_a_batch(standby)
    following = standby.follower()
    standby.look(following, FREE_MS - LOOK_INTERVAL_MS)
    standby.bus.claim("successor", {}, 1)
    standby.decide()
    # The watch has not seen it yet.
    assert not standby.look(following, LOOK_INTERVAL_MS)
    assert not standby.queries
    assert (standby.checkpoint / BUS_FILE).exists()
    assert standby.lock.is_free()


def test_a_query_that_does_not_stop_keeps_the_lock_until_it_does(
    standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = standby.follower()
    assert standby.look(following, FREE_MS)

    def never_stops(query: Query) -> None:
        raise follower.SPARK_ERRORS[0]("it takes too long")

    with monkeypatch.context() as patch:
        patch.setattr(follower, "stop_between_batches", never_stops)
        standby.look(following, 0, epoch=EPOCH + 1)
        assert not standby.lock.is_free()
    standby.queries[0].fail("it has ended at last")
    standby.look(following, 0, epoch=EPOCH + 1)
    assert standby.lock.is_free()


def test_after_an_error_it_begins_again_later(standby: Standby) -> None:
    following = standby.follower()
    standby.refuse = [OSError(28, "No space left on device")]
    assert not standby.look(following, FREE_MS)
    assert not standby.look(following, PAUSE_MS)
    assert standby.look(following, FREE_MS)
    standby.queries[0].fail("the bus is gone")
    assert not standby.look(following, LOOK_INTERVAL_MS)
    assert standby.lock.is_free()
    assert not standby.look(following, PAUSE_MS)
    assert standby.look(following, FREE_MS)


def test_pages_commit_nothing_and_the_first_decisions_vouch_for_the_checkpoint(standby: Standby) -> None:
    following = standby.follower()
    assert standby.look(following, FREE_MS)
    (query,) = standby.queries
    query.commit([b"an outcome that no batch of pages has"])
    written: list[Sequence[bytes]] = []
    claim = standby.bus.claim("standby", {}, 1)
    assert following.let_decide(claim, written.append) is query  # type: ignore[arg-type, comparison-overlap]
    assert read_note(standby.note) == ClaimNote(claim.seq, standby.bus.committed_seq())
    query.commit([])
    assert written == []
    assert not (standby.checkpoint / BUS_FILE).exists()
    query.commit([b"decided"])
    assert written == [[b"decided"]]
    assert (standby.checkpoint / BUS_FILE).exists()
    # It is no longer the follower's to end.
    following.stop()
    assert query.isActive


def test_a_checkpoint_of_pages_alone_is_moved_aside_by_the_next_job(standby: Standby) -> None:
    following = standby.follower()
    assert standby.look(following, FREE_MS)
    standby.queries[0].batch(0, standby.bus.decided_seq())
    following.stop()
    settle(standby.checkpoint, standby.bus, 1)
    assert has_batches(standby.checkpoint.with_name("checkpoint.aside"))
    assert not has_batches(standby.checkpoint)


def test_a_state_that_was_laid_out_again_is_not_decided_on_and_not_followed_again(standby: Standby) -> None:
    following = standby.follower()
    assert standby.look(following, FREE_MS)
    standby.bus.replace_image(EPOCH, standby.bus.image())
    assert not following.is_ready()
    standby.bus.claim("again", {}, 1)
    standby.decide()
    assert not standby.look(following, 2 * FREE_MS, epoch=EPOCH + 1)
    assert len(standby.queries) == 1


def test_a_claim_that_cannot_be_noted_ends_the_job_with_a_clear_error(standby: Standby) -> None:
    following = standby.follower()
    assert standby.look(following, FREE_MS)
    standby.note.mkdir()
    (standby.note / "in the way").touch()
    with pytest.raises(follower.JobError, match="cannot be told of the claim"):
        following.let_decide(Claim(2, 2, 2), lambda outcomes: None)
