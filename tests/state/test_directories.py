"""A partition knows the directories of its replicas, and pays for them only where there are any."""

import pytest
from msgspec.structs import replace

from state.directories import NO_DIRECTORY, changed_directories, directory_of, kept
from state.log_directory import LOST, MIGRATING, is_online
from state.packed import Unpacked, pack
from tests.state.test_codec import PARTITION

PLAIN = [replace(PARTITION, partition=number, directories=()) for number in range(12)]
PLACED = replace(PLAIN[5], directories=("A", "", "B"))
MIXED = [*PLAIN[:5], PLACED, *PLAIN[6:]]


def test_directories_are_known_by_broker() -> None:
    assert [directory_of(PLACED, broker) for broker in (3, 1, 2, 9)] == ["A", NO_DIRECTORY, "B", NO_DIRECTORY]
    assert directory_of(PLAIN[5], 3) == NO_DIRECTORY
    assert changed_directories(PLAIN[5], PLACED) == {3: "A", 2: "B"}
    assert (kept(("", "", "")), kept(("", "A"))) == ((), ("", "A"))


def test_no_directories_take_one_byte() -> None:
    plain, mixed = pack(PLAIN), pack(MIXED)
    assert len(mixed.body) - len(plain.body) == len("A") + len("B") + 3
    assert plain.body.endswith(b"\x90")
    assert Unpacked(plain).with_changes({5: PLACED}) == mixed
    assert Unpacked(mixed).with_changes({5: PLAIN[5]}) == plain


def test_packed_partitions_are_read_in_every_way() -> None:
    assert [Unpacked(pack(MIXED)).at(place) for place in range(12)] == MIXED
    assert list(Unpacked(pack(MIXED)).all()) == MIXED == Unpacked(pack(MIXED)).some(range(12))


@pytest.mark.parametrize("online", [(), ("A", "B")])
def test_a_replica_is_online_in_a_directory_that_its_broker_can_read(online: tuple[str, ...]) -> None:
    assert [is_online(directory, online) for directory in ("", MIGRATING, "A")] == [True] * 3
    assert not is_online(LOST, online)
    assert is_online("C", online) == (not online)
