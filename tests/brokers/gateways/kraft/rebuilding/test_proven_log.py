"""A gateway's log rebuilt from brokers' copies: the same bytes or a refusal, never a guess."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.rebuilding.opening import rebuild
from brokers.gateways.kraft.settings import Identity
from brokers.voters import Voter
from tests.brokers.gateways.kraft.storages import (
    START_MS,
    beats,
    event,
    follow,
    gateway,
    opened,
    registered,
    story,
    topic,
    whole,
)
from tests.support.broker_copies import CLUSTER_ID, broker_copy, cuts_of, log_of
from tests.support.decided_bus import DecidedBus

# Settings change and change back, within a millisecond and later.
FICKLE = [
    event("alter_config", START_MS + at, entity="cluster", config={"compression.type": kind})
    for at, kind in ((0, "lz4"), (0, "zstd"), (0, "lz4"), (0, "zstd"), (5, "lz4"), (9, "zstd"))
]
NOTHING = [b"no event"] * 5
MORE = [topic("more"), gateway("z")]


def decided(path: Path, events: list[bytes]) -> DecidedBus:
    bus = DecidedBus(path)
    bus.take(events)
    return bus


def written(directory: Path, bus: DecidedBus, **options: int) -> bytes:
    """Write a gateway's log in two starts, so that it has snapshots; return all of its bytes."""
    for _ in range(2):
        storage = opened(directory, bus.bus, **options)
        follow(storage, bus.bus)
        data = whole(storage)
        storage.close()
    return data


def rebuilt(directory: Path, bus: DecidedBus, *copies: Path, without: frozenset[int] = frozenset()) -> Path:
    identity = Identity(
        gateway=100, voters=(Voter(100, "h", 1),), cluster_id=CLUSTER_ID, directory=directory, copies=copies
    )
    return rebuild(identity, bus.bus, without)


@pytest.fixture
def busses(tmp_path: Path) -> Iterator[list[DecidedBus]]:
    made: list[DecidedBus] = []
    yield made
    for bus in made:
        bus.close()


def rising(events: list[bytes]) -> list[bytes]:
    """Advance time between events."""
    return [one.replace(b"%d" % START_MS, b"%d" % (START_MS + 7 * number)) for number, one in enumerate(events)]


@pytest.mark.parametrize(
    "events",
    [story(3), rising(story(3)), story(2)[:12] + FICKLE],
    ids=["all in one millisecond", "one after the other", "to and fro"],
)
def test_the_rebuilt_log_is_identical_or_refused_wherever_copy_and_bus_end(
    tmp_path: Path, busses: list[DecidedBus], events: list[bytes]
) -> None:
    came = refused = 0
    for gone in range(1, len(events) + 1, 9):
        bus = decided(tmp_path / f"{gone}.db", events)
        busses.append(bus)
        expected = written(tmp_path / f"{gone}", bus)
        bus.trim(len(events) - gone)
        for size in cuts_of(expected):
            copy = broker_copy(tmp_path / f"{gone}-{size}", tmp_path / f"{gone}", size=size)
            log = tmp_path / f"{gone}-{size}" / "log"
            try:
                rebuilt(log, bus, copy)
            except StorageError:
                assert not list(log.glob("*.log")), "nothing is left that could be served"
                refused += 1
            else:
                # At first the log is what the broker had; after it has followed the decisions again it is complete.
                assert expected.startswith(log_of(log))
                assert written(log, bus) == expected
                came += 1
    assert came > 10
    assert refused > 10


def test_a_rebuilt_log_continues_as_the_lost_one_would(tmp_path: Path, busses: list[DecidedBus]) -> None:
    events = story(4)
    for gone in (9, len(events) - 4):
        bus = decided(tmp_path / f"{gone}.db", events)
        busses.append(bus)
        there = tmp_path / f"{gone}" / "there"
        held = written(there, bus)
        bus.trim(len(events) - gone)
        copy = broker_copy(tmp_path / f"{gone}", there)
        again = tmp_path / f"{gone}" / "again"
        assert rebuilt(again, bus, copy) == copy
        assert log_of(again) == held
        bus.take([*MORE, *FICKLE])
        assert written(again, bus) == written(there, bus) != held
        # A later start, after more decisions were removed, accepts the log.
        bus.trim(1)
        assert written(again, bus) == written(there, bus)


def test_a_copy_that_begins_with_a_snapshot_is_taken_with_it(tmp_path: Path, busses: list[DecidedBus]) -> None:
    bus = decided(tmp_path / "bus.db", story(4))
    busses.append(bus)
    for through in range(1, bus.bus.decided_seq() + 1, 2):
        storage = opened(tmp_path / "there", bus.bus, snapshot_interval_bytes=800)
        follow(storage, bus.bus, through=through)
        storage.close()
    held = written(tmp_path / "there", bus)
    assert min(int(path.stem) for path in (tmp_path / "there").glob("*.log")) > 0
    bus.trim(4)
    copy = broker_copy(tmp_path, tmp_path / "there")
    rebuilt(tmp_path / "again", bus, copy)
    assert written(tmp_path / "again", bus) == held
    [snapshot] = copy.glob("*.checkpoint")
    assert (tmp_path / "again" / snapshot.name).read_bytes() == snapshot.read_bytes()


def test_without_decisions_on_the_bus_the_longest_copy_of_all_brokers_counts(
    tmp_path: Path, busses: list[DecidedBus]
) -> None:
    bus = decided(tmp_path / "bus.db", [*story(2), *FICKLE])
    busses.append(bus)
    held = written(tmp_path / "there", bus)
    *_, before, last = list(cuts_of(held))
    bus.take(NOTHING)
    bus.trim(len(NOTHING))
    behind = broker_copy(tmp_path / "a", tmp_path / "there", 1, before)
    # Its records equal those of the copy that reaches the end.
    fickle = broker_copy(tmp_path / "b", tmp_path / "there", 2, list(cuts_of(held))[-3])
    longest = broker_copy(tmp_path / "c", tmp_path / "there", 3, last)
    with pytest.raises(StorageError, match=r"lacks what was decided .* settings of all brokers"):
        rebuilt(tmp_path / "again", bus, behind)
    with pytest.raises(StorageError, match="those of 2, 3 are missing"):
        rebuilt(tmp_path / "again", bus, broker_copy(tmp_path / "d", tmp_path / "there", 1))
    with pytest.raises(StorageError, match="those of 1, 3 are missing"):
        rebuilt(tmp_path / "again", bus, fickle)
    assert not list((tmp_path / "again").glob("*.log"))
    assert rebuilt(tmp_path / "again", bus, behind, fickle, longest) == longest
    assert written(tmp_path / "again", bus) == held
    bus.take(MORE)
    assert written(tmp_path / "again", bus) == written(tmp_path / "there", bus)
    rebuilt(tmp_path / "trusted", bus, longest, without=frozenset({1, 2}))


@pytest.mark.parametrize("kept", [1, 7, 40])
def test_decisions_without_records_prove_the_position_by_their_times(
    tmp_path: Path, busses: list[DecidedBus], kept: int
) -> None:
    started = {"controller_id": "c", "controller_epoch": 1}
    idle = [
        event("controller_started", **started, settings={"metadata.max.idle.interval.ms": 5_000}),
        *story(2)[1:],
        event("gateway_started", gateway=100, incarnation="g", voters=[100], is_kraft=True),
    ]
    for number in range(1, 41):
        now_ms = START_MS + 5_000 * number
        idle.append(event("tick", now_ms - 1, controller_epoch=1))
        idle.append(event("gateway_heartbeat", now_ms, gateway=100, incarnation="g"))
        idle.append(event("tick", now_ms, controller_epoch=1))
    bus = decided(tmp_path / "bus.db", idle)
    busses.append(bus)
    held = written(tmp_path / "there", bus)
    *_, before, last = cuts_of(held)
    bus.trim(3 * kept - 1)
    for size in (before, last):
        copy = broker_copy(tmp_path / f"{size}", tmp_path / "there", size=size)
        log = tmp_path / f"{size}" / "again"
        if size == before and kept == 1:
            # The copy ends before the oldest decision, and no single copy can prove that it is complete.
            with pytest.raises(StorageError, match="those of 2, 3 are missing"):
                rebuilt(log, bus, copy)
        else:
            rebuilt(log, bus, copy)
            assert written(log, bus) == held


def test_untrustworthy_copies_are_refused(tmp_path: Path, busses: list[DecidedBus]) -> None:
    bus = decided(tmp_path / "bus.db", story(3))
    busses.append(bus)
    held = written(tmp_path / "there", bus)
    bus.trim(5)
    sizes = list(cuts_of(held))

    def refused(copy: Path, *more: Path, match: str) -> None:
        with pytest.raises(StorageError, match=match):
            rebuilt(tmp_path / "again", bus, copy, *more)

    refused(tmp_path / "nowhere", match=r"no copy of the metadata log at .*nowhere")
    refused(broker_copy(tmp_path / "o", tmp_path / "there", cluster_id="other"), match="belongs to cluster other")
    flipped = broker_copy(tmp_path / "f", tmp_path / "there")
    sound = (flipped / f"{0:020d}.log").read_bytes()
    for at in (3, 70, 300, sizes[3] + 12, len(sound) // 2):
        (flipped / f"{0:020d}.log").write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        refused(flipped, match="is damaged|records are missing|follows|does not begin")
    (flipped / f"{0:020d}.log").write_bytes(sound[: sizes[4]] + sound[sizes[5] :])
    refused(flipped, match="records are missing")
    (flipped / f"{0:020d}.log").write_bytes(sound)
    (flipped / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n7 3\n")
    refused(flipped, match="leader-epoch-checkpoint says that epoch 7 begins at offset 3")
    other = decided(tmp_path / "other.db", [gateway("a"), registered(1), *beats((1, 2)), *story(5)[1:]])
    busses.append(other)
    written(tmp_path / "elsewhere", other)
    refused(
        broker_copy(tmp_path / "x", tmp_path / "there"),
        broker_copy(tmp_path / "x", tmp_path / "elsewhere", 2),
        match="differ at offset",
    )
    refused(broker_copy(tmp_path / "e", tmp_path / "elsewhere"), match="lacks what was decided")
    (tmp_path / "e" / "node-1" / "meta.properties").unlink()
    refused(tmp_path / "e" / "node-1" / "__cluster_metadata-0", match="cannot be read")


def test_a_torn_tail_of_a_copy_is_ignored(tmp_path: Path, busses: list[DecidedBus]) -> None:
    bus = decided(tmp_path / "bus.db", story(3))
    busses.append(bus)
    held = written(tmp_path / "there", bus)
    bus.trim(6)
    *_, before, last = list(cuts_of(held))
    for number, tail in enumerate((held[before : last - 1], held[before : before + 20], bytes(500))):
        copy = broker_copy(tmp_path / f"{number}", tmp_path / "there", size=before)
        path = copy / f"{0:020d}.log"
        path.write_bytes(path.read_bytes() + tail)
        rebuilt(tmp_path / f"again-{number}", bus, copy)
        assert written(tmp_path / f"again-{number}", bus) == held


def test_nothing_is_rebuilt_while_the_bus_has_all_decisions(tmp_path: Path, busses: list[DecidedBus]) -> None:
    bus = decided(tmp_path / "bus.db", story(2))
    busses.append(bus)
    written(tmp_path / "there", bus)
    with pytest.raises(StorageError, match="the bus still has all decisions"):
        rebuilt(tmp_path / "again", bus, broker_copy(tmp_path, tmp_path / "there"))
