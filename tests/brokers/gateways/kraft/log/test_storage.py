"""The metadata log on disk: its contents, and what a start accepts and refuses."""

import shutil
from pathlib import Path

import pytest

from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.log.metadata_log import MetadataLog
from brokers.gateways.kraft.log.storage import Storage
from brokers.wire.record_batch import decode_batches
from controller_logic.broker_settings import in_force
from state.policy import Policy
from tests.brokers.gateways.kraft.storages import BEGINNING, beats, event, follow, gateway, opened, story, topic, whole
from tests.support.decided_bus import DecidedBus


def log_of(directory: Path, decided: DecidedBus, *cuts: int, together: int = 1) -> bytes:
    storage = opened(directory, decided.bus)
    follow(storage, decided.bus, cuts or (1,), together=together)
    data = whole(storage)
    storage.close()
    return data


def test_the_same_decisions_make_the_same_log_however_they_are_batched(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    logs = {
        log_of(tmp_path / f"{cuts}-{together}", decided, *cuts, together=together)
        for cuts in ((1,), (3,), (7, 1, 2), (1_000,))
        for together in (1, 4)
    }
    assert len(logs) == 1
    batches = list(decode_batches(logs.pop()))
    assert [batch.base_offset for batch in batches] == [0, *[batch.next_offset for batch in batches[:-1]]]
    assert [batch.leader_epoch for batch in batches if batch.control] == [1, 2]
    assert batches[0].control
    assert sorted({batch.leader_epoch for batch in batches}) == [1, 2]


def test_decisions_before_the_quorum_are_in_its_first_records(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(BEGINNING[1:])
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    assert (storage.end_offset, storage.decided_seq, set(storage.image.brokers)) == (0, 6, {1, 2, 3})
    decided.take([gateway("a")])
    follow(storage, decided.bus)
    leader_change, first = decode_batches(whole(storage))
    assert (leader_change.control, len(first.records)) == (True, 3 + 3 + 2)
    storage.close()


def test_a_restart_continues_after_the_last_event_in_the_log(decided: DecidedBus, tmp_path: Path) -> None:
    events = story()
    for at in range(len(events)):
        decided.take(events[at : at + 1])
        storage = opened(tmp_path / "log", decided.bus)
        follow(storage, decided.bus)
        storage.close()
    assert log_of(tmp_path / "log", decided) == log_of(tmp_path / "other", decided)


def test_batches_are_read_from_the_one_that_holds_the_offset(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    data = whole(storage, 100_000)
    batches = list(decode_batches(data))
    for batch in batches:
        for offset in {batch.base_offset, batch.next_offset - 1}:
            for max_bytes in (1, batch.size, 700, 100_000):
                read = list(decode_batches(storage.read(offset, max_bytes)))
                assert read[0] == batch
                assert len(read) == 1 or sum(one.size for one in read) <= max_bytes
                assert read == batches[batches.index(batch) :][: len(read)]
            assert storage.read(offset, 100_000) == data[sum(b.size for b in batches[: batches.index(batch)]) :]
    assert storage.read(storage.end_offset, 1_000) == b""
    storage.close()


def test_an_epoch_ends_where_the_next_one_starts(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take([*BEGINNING, gateway("b"), gateway("c"), topic("t")])
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    second, third = [b.base_offset for b in decode_batches(whole(storage)) if b.control][1:]
    assert storage.end_of_epoch(0) == (0, 0)
    assert storage.end_of_epoch(1) == (1, second)
    assert storage.end_of_epoch(2) == (2, third)
    assert storage.end_of_epoch(3) == (3, storage.end_offset)
    assert storage.end_of_epoch(9) == (3, storage.end_offset)
    storage.close()


def test_events_without_records_are_noted_occasionally(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(BEGINNING)
    unreadable = [b"no event"] * 2_500
    decided.take(unreadable)
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus, (100,))
    size = len(whole(storage))
    storage.close()
    decided.trim(600)
    storage = opened(tmp_path / "log", decided.bus)
    assert (len(whole(storage)), storage.decided_seq > 1_900) == (size, True)
    follow(storage, decided.bus)
    decided.take([topic("t")])
    follow(storage, decided.bus)
    assert "t" in storage.image.topic_ids
    storage.close()


def test_a_log_that_is_ahead_of_the_decisions_is_not_served(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    log_of(tmp_path / "log", decided)
    behind = DecidedBus(tmp_path / "behind.db")
    behind.take(story()[:9])
    with pytest.raises(StorageError, match=r"ends at offset 67, epoch 2, decision 24, .* on the bus at 9: "):
        opened(tmp_path / "log", behind.bus)
    behind.close()


def test_a_log_of_other_decisions_is_not_served(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take([*BEGINNING, topic("t")])
    log_of(tmp_path / "log", decided)
    other = DecidedBus(tmp_path / "other.db")
    other.take([*BEGINNING, topic("u")])
    with pytest.raises(StorageError, match=r"at offset 12 .* decision 8 in epoch 1, .* translate to other records"):
        opened(tmp_path / "log", other.bus)
    other.close()
    another = DecidedBus(tmp_path / "another.db")
    another.take([*BEGINNING, b"no event", topic("t")])
    with pytest.raises(StorageError, match=r"of decision 8 in epoch 1, .* next translate to records of decision 9"):
        opened(tmp_path / "log", another.bus)
    another.close()
    nothing = DecidedBus(tmp_path / "nothing.db")
    nothing.take([*BEGINNING, b"no event", b"no event"])
    with pytest.raises(StorageError, match=r"of decision 8 .* translate to no records"):
        opened(tmp_path / "log", nothing.bus)
    nothing.close()


def test_a_lost_log_is_rebuilt(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story())
    first = log_of(tmp_path / "log", decided)
    shutil.rmtree(tmp_path / "log")
    assert log_of(tmp_path / "log", decided) == first


def test_a_log_stands_in_for_its_trimmed_decisions(decided: DecidedBus, tmp_path: Path) -> None:
    events = story()
    for retain in range(len(events) - 1):
        bus = DecidedBus(tmp_path / f"{retain}.db")
        bus.take(events[:-1])
        before = log_of(tmp_path / f"{retain}", bus)
        image = opened(tmp_path / f"{retain}-again", bus.bus)
        follow(image, bus.bus)
        bus.trim(retain)
        storage = opened(tmp_path / f"{retain}", bus.bus)
        follow(storage, bus.bus)
        assert storage.image == image.image
        assert whole(storage) == before
        bus.take(events[-1:])
        follow(storage, bus.bus)
        assert len(whole(storage)) > len(before)
        storage.close()
        image.close()
        bus.close()


def test_a_log_that_lacks_trimmed_decisions_does_not_start(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take(story()[:8])
    log_of(tmp_path / "log", decided)
    decided.take([*story()[8:], gateway("c"), gateway("d")])
    decided.trim(2)
    with pytest.raises(StorageError, match=r"ends at offset 15, epoch 1, decision 8, .* removed from the bus"):
        opened(tmp_path / "log", decided.bus)
    with pytest.raises(StorageError, match=r"ends at offset 0, .* removed from the bus"):
        opened(tmp_path / "lost", decided.bus)


def test_a_quorum_can_start_when_early_decisions_are_gone(decided: DecidedBus, tmp_path: Path) -> None:
    before = [one for one in story() if b"gateway" not in one]
    # No gateway's event precedes it, so broker 1 has epoch 1.
    before.insert(3, event("allocate_producer_ids", broker=1, broker_epoch=1, request_id="p"))
    full = DecidedBus(tmp_path / "full.db")
    full.take([*before, gateway("a"), topic("late")])
    decided.take(before)
    decided.trim(3)
    storage = opened(tmp_path / "log", decided.bus)
    assert storage.decided_seq == len(before)
    decided.take([gateway("a"), topic("late")])
    follow(storage, decided.bus)
    data = whole(storage)
    storage.close()
    assert data == log_of(tmp_path / "full", full)
    assert log_of(tmp_path / "log", decided) == data, "a restart compares what it can"
    full.close()


def test_two_gateways_do_not_share_a_directory(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "log")
    with pytest.raises(StorageError, match="in use by another gateway"):
        Storage(tmp_path / "log")
    storage.close()
    Storage(tmp_path / "log").close()


@pytest.mark.parametrize("suffix", [".log", ".ends"])
def test_a_damaged_log_is_not_served(decided: DecidedBus, tmp_path: Path, suffix: str) -> None:
    decided.take(story())
    data = log_of(tmp_path / "log", decided)
    path = tmp_path / "log" / f"{0:020d}{suffix}"
    sound = path.read_bytes()
    for position in range(0, len(sound), 97):
        damaged = sound[:position] + bytes([sound[position] ^ 1]) + sound[position + 1 :]
        path.write_bytes(damaged)
        if suffix == ".log":
            with pytest.raises(StorageError, match="is damaged between offsets"):
                Storage(tmp_path / "log")
        elif position < 36:
            with pytest.raises(StorageError, match="does not say where"):
                Storage(tmp_path / "log")
        else:
            # The decisions write the lost records again, before anybody is served.
            assert log_of(tmp_path / "log", decided) == data
            asides = [aside.read_bytes() for aside in (tmp_path / "log").glob(f"aside-*/{path.name}")]
            assert damaged in asides or position >= len(sound) - 36, "the last one may be what a crash left"
    path.write_bytes(sound[:-1])
    if suffix == ".log":
        with pytest.raises(StorageError, match=f"has {len(sound) - 1} bytes where {len(sound)} were written"):
            Storage(tmp_path / "log")


@pytest.mark.parametrize("suffix", [".ends", ".log"])
def test_a_copy_is_not_cut_where_it_is_damaged(decided: DecidedBus, tmp_path: Path, suffix: str) -> None:
    decided.take(story())
    log_of(tmp_path / "log", decided)
    MetadataLog(tmp_path / "log", is_copy=True).close()
    path = tmp_path / "log" / f"{0:020d}{suffix}"
    sound = path.read_bytes()
    path.write_bytes(sound[:-100] + b"??" + sound[-98:] if suffix == ".ends" else sound + b"unfinished")
    with pytest.raises(StorageError, match=r"is damaged after|were written"):
        MetadataLog(tmp_path / "log", is_copy=True)
    assert not list((tmp_path / "log").glob("aside-*"))
    Storage(tmp_path / "log").close()


def test_brokers_may_be_told_settings_as_long_as_kafka_allows(decided: DecidedBus, tmp_path: Path) -> None:
    long = [
        event("alter_config", entity="cluster", config={name: "x" * n}) for name, n in (("a", 32_768), ("b", 32_767))
    ]
    decided.take([*BEGINNING, *long, *beats((1, 2))])
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    assert storage.image.configs[4, ""].keys() - in_force(Policy()).keys() == {"b"}
    storage.close()
