"""Partitions as stored bytes, each read on demand.

The problem: an event needs few partitions of a page. A lost broker needs those that have a replica on it, and an ISR
change needs one. To read, free and write a partition costs as much as to decide about it. A balance check needs all
partitions, but only their leaders.

The insight: a partition that no rule asks for can remain bytes. Columns beside these bytes say how long each partition
is, which brokers have its replicas, and which one leads it. So a partition is found without reading the others, leaders
are counted without reading any, and an unchanged partition is copied.

    body       |p0......|p1.....|p2.......|   MessagePack, one partition after another
    lengths     8        7       9
    replicas    1 2 3    2 3 1   3 1 2        as many for each partition
    moving                  1                 places of those with replicas to add or to remove
    leaders     2        3       4            leader + 1, so 0 is none
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, chain, pairwise

import msgspec

from state.ids import NO_LEADER
from state.partition import Partition

# A column has one, two or four bytes for each number, as many as the greatest of them needs.
_FORMATS = {2: "H", 4: "I"}
_encode_all = msgspec.msgpack.Encoder().encode
_one = msgspec.msgpack.Decoder(Partition).decode
_many = msgspec.msgpack.Decoder(tuple[Partition, ...]).decode


# How a partition's array begins and ends if its last five fields are empty, and how it begins without them.
_FIELDS = len(Partition.__struct_fields__)
_HEADER, _EMPTY_END = b"\xdc" + _FIELDS.to_bytes(2), b"\x90\x90\x90\x90\x00"
_SHORT_HEADER = b"\xdc" + (_FIELDS - len(_EMPTY_END)).to_bytes(2)


def _encode(partition: Partition) -> bytes:
    """Write a partition. Without eligible replicas it is as it was before level 2, and as most partitions are."""
    body = _encode_all(partition)
    if partition.has_more:
        return body
    return _SHORT_HEADER + body[len(_HEADER) : -len(_EMPTY_END)]


class PackedPartitions(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some partitions of a topic, in order."""

    count: int
    body: bytes
    lengths: bytes
    # How many replicas each partition has. One with fewer repeats its last replica.
    replicas_each: int
    replicas: bytes
    moving: tuple[int, ...]
    leaders: bytes


# What stands beside the lengths in ``PackedPartitions``.
_Columns = tuple[int, bytes, tuple[int, ...], bytes]


def is_moving(partition: Partition) -> bool:
    """Return whether the partition has replicas to add or to remove, or to be removed by their brokers."""
    return bool(partition.adding_replicas or partition.removing_replicas or partition.removed)


def pack(partitions: Iterable[Partition]) -> PackedPartitions:
    partitions = list(partitions)
    bodies = [_encode(partition) for partition in partitions]
    return PackedPartitions(
        len(bodies), b"".join(bodies), column_of([len(body) for body in bodies]), *_columns(partitions)
    )


def texts_of(packed: PackedPartitions) -> list[bytes]:
    """Return each partition as its bytes. Raises ``ValueError`` if the lengths are no column."""
    return [packed.body[start:end] for start, end in pairwise(_bounds_of(packed))]


def partitions_of(texts: Collection[bytes]) -> tuple[Partition, ...]:
    """Read partitions from their bytes."""
    return _read_all(len(texts), b"".join(texts))


def _bounds_of(packed: PackedPartitions) -> list[int]:
    """Return where each partition begins, then where the last one ends."""
    return list(accumulate(numbers_in(packed.lengths, packed.count), initial=0))


def _read_all(count: int, body: bytes) -> tuple[Partition, ...]:
    return _many(b"\xdd" + count.to_bytes(4) + body)


def _columns(partitions: Sequence[Partition]) -> _Columns:
    lists: list[tuple[int, ...]] = [partition.replicas for partition in partitions]
    each = max(map(len, lists), default=0)
    if each and min(map(len, lists)) < each:
        lists = [(*ids, *(ids[-1:] or (0,)) * (each - len(ids))) for ids in lists]
    # As ``is_moving``, without a call for each partition.
    still = [not (one.adding_replicas or one.removing_replicas or one.removed) for one in partitions]
    moving = () if all(still) else tuple([place for place, stays in enumerate(still) if not stays])
    leaders = column_of([one.leader - NO_LEADER for one in partitions])
    return each, column_of(list(chain.from_iterable(lists))), moving, leaders


def column_of(numbers: Sequence[int]) -> bytes:
    """Write numbers, 0 ≤ number < 2**32, little-endian."""
    greatest = max(numbers, default=0)
    if greatest < 1 << 8:
        return bytes(numbers)
    width = 2 if greatest < 1 << 16 else 4
    return struct.pack(f"<{len(numbers)}{_FORMATS[width]}", *numbers)


def numbers_in(column: bytes, count: int) -> Sequence[int]:
    """Read ``count`` numbers. Raises ``ValueError`` if the column does not have as many."""
    if len(column) == count:
        return column
    width, rest = divmod(len(column), count or 1)
    if rest or width not in _FORMATS:
        raise ValueError(f"{len(column)} bytes are no column of {count} numbers")
    return struct.unpack(f"<{count}{_FORMATS[width]}", column)


def _places_of(number: int, column: Sequence[int]) -> Iterator[int]:
    if isinstance(column, bytes) and number >= 1 << 8:
        return
    place = -1
    for _ in range(column.count(number)):
        place = column.index(number, place + 1)
        yield place


class Unpacked:
    """Packed partitions, and the ones that were read. A partition is read once, so it stays the same object."""

    __slots__ = ("_ends", "_read", "_view", "packed")

    def __init__(self, packed: PackedPartitions) -> None:
        self.packed = packed
        self._view = memoryview(packed.body)
        self._ends: list[int] | None = None
        self._read: dict[int, Partition] = {}

    def __len__(self) -> int:
        return self.packed.count

    @property
    def _bounds(self) -> list[int]:
        if self._ends is None:
            self._ends = _bounds_of(self.packed)
        return self._ends

    def at(self, place: int) -> Partition:
        found = self._read.get(place)
        if found is None:
            bounds = self._bounds
            found = self._read[place] = _one(self._view[bounds[place] : bounds[place + 1]])
        return found

    def some(self, places: Sequence[int]) -> list[Partition]:
        read, view, bounds = self._read, self._view, self._bounds
        found = []
        for place in places:
            partition = read.get(place)
            if partition is None:
                partition = read[place] = _one(view[bounds[place] : bounds[place + 1]])
            found.append(partition)
        return found

    def all(self) -> Sequence[Partition]:
        count, read = self.packed.count, self._read
        if len(read) < count:
            self._read = dict(enumerate(_read_all(count, self.packed.body))) | read
        return [self._read[place] for place in range(count)]

    def on(self, brokers: Set[int]) -> list[int]:
        """List the places of the partitions that have a replica on one of ``brokers``, and of those that move."""
        each, moving = self.packed.replicas_each, self.packed.moving
        ids = numbers_in(self.packed.replicas, self.packed.count * each)
        if len(brokers) > 1:
            found = [nth // each for nth, broker in enumerate(ids) if broker in brokers]
        else:
            # To search for one broker costs a tenth of going through all ids.
            found = [nth // each for broker in brokers for nth in _places_of(broker, ids)]
        return sorted({*found, *moving}) if moving else list(dict.fromkeys(found))

    def leaderships(self) -> Iterable[tuple[int, int]]:
        """Return each partition's first replica, which should lead it, and its leader."""
        packed = self.packed
        preferred = numbers_in(packed.replicas, packed.count * packed.replicas_each)[:: packed.replicas_each or 1]
        leaders = [number + NO_LEADER for number in numbers_in(packed.leaders, packed.count)]
        return zip(preferred, leaders, strict=True)

    def with_changes(self, changed: Mapping[int, Partition]) -> PackedPartitions:
        """Write the partitions with some changed or appended; copy the bytes of the others."""
        if max(changed, default=0) >= self.packed.count:
            merged = dict(enumerate(self.all())) | dict(changed)
            return pack([merged[place] for place in sorted(merged)])
        packed, view, bounds, read = self.packed, self._view, self._bounds, self._read
        lengths = list(numbers_in(packed.lengths, packed.count))
        pieces: list[bytes | memoryview] = []
        copied, same_columns, moving = 0, True, frozenset(packed.moving)
        leaders: dict[int, int] = {}
        for place in sorted(changed):
            partition, before = changed[place], read.get(place) or self.at(place)
            if bounds[place] > copied:
                pieces.append(view[copied : bounds[place]])
            body = _encode(partition)
            pieces.append(body)
            copied, lengths[place] = bounds[place + 1], len(body)
            if partition.replicas is not before.replicas or moving or is_moving(partition):
                same_columns &= partition.replicas == before.replicas and is_moving(partition) == (place in moving)
            if partition.leader != before.leader:
                leaders[place] = partition.leader
        pieces.append(view[copied:])
        columns: _Columns = packed.replicas_each, packed.replicas, packed.moving, self._leaders_with(leaders)
        if not same_columns:
            columns = _columns([changed.get(place, partition) for place, partition in enumerate(self.all())])
        return PackedPartitions(packed.count, b"".join(pieces), column_of(lengths), *columns)

    def _leaders_with(self, changed: Mapping[int, int]) -> bytes:
        """Return the column of leaders with those at some places changed."""
        packed = self.packed
        if not changed:
            return packed.leaders
        numbers = list(numbers_in(packed.leaders, packed.count))
        for place, leader in changed.items():
            numbers[place] = leader - NO_LEADER
        return column_of(numbers)
