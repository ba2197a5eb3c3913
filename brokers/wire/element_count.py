"""Count what a request holds, without building it.

kafka-python's codec builds whatever a request announces, on the event loop: an array element of two bytes costs it some
microseconds, and each struct with tagged fields a copy of all bytes that follow.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kafka.protocol.schemas import load_json

from brokers.wire.layout import FIXED_SIZES, versions
from brokers.wire.plain import Fault, Reader, classic_length, compact_length, fixed

# A fetch has two elements for each partition, so this is enough for 100,000 partitions of one leader.
ELEMENTS_MAX = 200_000
COPIED_BYTES_MAX = 256 * 1024 * 1024
# Up to its client id, which has two bytes of length.
_HEADER_BYTES = 8
_short = fixed("int16")

_Skip = Callable[["_Counter"], None]


class _Counter(Reader):
    """A position in a request, and what was counted up to there: elements and tagged fields, and bytes to be copied."""

    def __init__(self, frame: bytes) -> None:
        super().__init__(frame)
        self._counted = 0
        self._copied = 0

    def count(self, more: int) -> None:
        """Count elements before they are read. Raises ``Fault`` if they are too many."""
        self._counted += max(more, 0)
        if self._counted > ELEMENTS_MAX:
            raise Fault(f"more than {ELEMENTS_MAX} elements in one request")

    def tags(self) -> None:
        """Skip the tagged fields at the end of a struct."""
        count = self.uvarint()
        if count == 0:
            return
        self.count(count)
        self._copied += self.left
        if self._copied > COPIED_BYTES_MAX:
            raise Fault("tagged fields in too many elements of one request")
        for _ in range(count):
            self.uvarint()
            self.take(self.uvarint())


def check_elements(frame: bytes, name: str, version: int) -> None:
    """Walk through a request with its header; ``name`` is Kafka's, such as ``FetchRequest``.

    Raises ``Fault`` if it has too many elements, or ends too early.
    """
    flexible, skip = _message(name, version)
    counter = _Counter(frame)
    counter.take(_HEADER_BYTES)
    counter.take(max(_short.read(counter), 0))
    if flexible:
        counter.tags()
    skip(counter)


@lru_cache
def _message(name: str, version: int) -> tuple[bool, _Skip]:
    schema = load_json(name)
    flexible = version in versions(schema["flexibleVersions"])
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    return flexible, _struct(schema["fields"], common, version, flexible)


def _struct(fields: Sequence[Mapping[str, Any]], common: Mapping[str, Any], version: int, flexible: bool) -> _Skip:
    steps: list[_Skip] = []
    # Of fields of fixed size that follow each other, which are skipped together.
    size = 0
    for field in fields:
        if version not in versions(field["versions"]) or version in versions(field.get("taggedVersions", "none")):
            continue
        if field["type"] in FIXED_SIZES:
            size += FIXED_SIZES[field["type"]]
            continue
        if size:
            steps.append(_fixed(size))
            size = 0
        steps.append(_field(field, common, version, flexible))
    if size:
        steps.append(_fixed(size))

    def skip(counter: _Counter) -> None:
        for step in steps:
            step(counter)
        if flexible:
            counter.tags()

    return skip


def _field(field: Mapping[str, Any], common: Mapping[str, Any], version: int, flexible: bool) -> _Skip:
    kind = field["type"].removeprefix("[]")
    size = FIXED_SIZES.get(kind)
    length = compact_length if flexible else (_short if kind == "string" else classic_length)
    one: _Skip
    if size is not None:
        one = _fixed(size)
    elif kind in ("string", "bytes", "records"):

        def one(counter: _Counter) -> None:
            counter.take(max(length.read(counter), 0))

    else:
        one = _struct(field.get("fields") or common[kind], common, version, flexible)
    return _array(one, size, flexible) if kind != field["type"] else one


def _fixed(size: int) -> _Skip:
    def skip(counter: _Counter) -> None:
        counter.take(size)

    return skip


def _array(one: _Skip, size: int | None, flexible: bool) -> _Skip:
    length = compact_length if flexible else classic_length

    def skip(counter: _Counter) -> None:
        count = max(length.read(counter), 0)
        counter.count(count)
        if size is not None:
            counter.take(count * size)
            return
        for _ in range(count):
            one(counter)

    return skip
