"""A shard's topics in pages, each decoded when it is first needed."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial

from controller_logic.working_partitions import WorkingPartitions
from state.cluster import Changes
from state.ids import page_of, without_collisions
from state.partition import Partition, Topic
from state.stored.codec import decode_slices, encode_slices
from state.stored.packed import Unpacked, pack
from state.stored.slices import SLICE_PARTITIONS, Slice, slice_of, slices_of
from state.stored.stored_partitions import StoredPartitions

Page = dict[str, Slice]
# Pages as they are stored, by number.
Bodies = Mapping[int, bytes]


class _Pages:
    """The pages that have been needed so far. The first one that is needed loads the bodies of all.

    The page of a topic's first slice follows from the topic's name (``home_of``). Each further slice is on the page
    ``count`` after the one before. So no page holds two slices of one topic, however large the topic is.
    """

    def __init__(self, load: Callable[[], Bodies], shards: int, pages: int) -> None:
        self._load = load
        self._shards = shards
        self.count = pages
        self._decoded: dict[int, Page] = {}

    @cached_property
    def bodies(self) -> Bodies:
        return self._load()

    def home_of(self, topic: str) -> int:
        """Return the page of a topic's first slice."""
        return page_of(topic, self._shards, self.count)

    def page(self, page: int) -> Page:
        """Return the slices on a page by the names of their topics."""
        held = self._decoded.get(page)
        if held is None:
            body = self.bodies.get(page)
            held = self._decoded[page] = {} if body is None else _read(body)
        return held

    def names(self) -> Iterable[str]:
        """Return all names, each once."""
        return (name for page in self.bodies if page < self.count for name in self.page(page))

    def slice_of(self, topic: str, nth: int = 0) -> Slice | None:
        """Find a slice of a topic by its place."""
        return self.page(self.home_of(topic) + nth * self.count).get(topic)


class _Loaded:
    """The topics that have been needed so far.

    A topic that is not read whole refers to the pages, and they do not refer back to it. A cycle would need the garbage
    collector, so a shard's state would stay in memory until the last shard of a batch has been stepped.
    """

    def __init__(self, pages: _Pages) -> None:
        self.pages = pages
        self._topics: dict[str, Topic] = {}

    def topic(self, name: str) -> Topic | None:
        """Return a topic, whose partitions are read from their slices when they are asked for."""
        topic = self._topics.get(name)
        if topic is None:
            first = self.pages.slice_of(name)
            if first is None:
                return None
            partitions = StoredPartitions(first, partial(self.pages.slice_of, name))
            topic = Topic(name, first.topic_id, first.state, first.config, partitions, first.deletion_waits)
            self._topics[name] = topic
        return topic


def _read(body: bytes) -> Page:
    return {one.topic: one for one in decode_slices(body)}


class PagedTopics:
    """The ``state.cluster.Topics`` over the pages that ``load`` returns.

    They are loaded only if an event needs one. A heartbeat needs none. ``changed`` returns a view over the same pages,
    and ``changed_pages`` says what to store for it.
    """

    def __init__(self, load: Callable[[], Bodies], shards: int, pages: int) -> None:
        self._stored = _Loaded(_Pages(load, shards, pages))
        self._changes: dict[str, Topic | None] = {}

    @property
    def bodies(self) -> Bodies:
        """All pages as they were loaded."""
        return self._stored.pages.bodies

    def get(self, topic: str, /) -> Topic | None:
        return self._changes[topic] if topic in self._changes else self._stored.topic(topic)

    def names(self) -> list[str]:
        names = {name for name in self._stored.pages.names() if name not in self._changes}
        return sorted(names | {name for name, topic in self._changes.items() if topic is not None})

    def twin_of(self, topic: str, /) -> str | None:
        """Look on one page only, because names that collide have the same hash."""
        unified = without_collisions(topic)
        pages = self._stored.pages
        stored = pages.page(pages.home_of(topic))
        names = (*(name for name in stored if name not in self._changes), *self._changes)
        return next(
            (n for n in names if without_collisions(n) == unified and self._changes.get(n, n) is not None), None
        )

    def changed(self, changes: Changes, /) -> "PagedTopics":
        after = PagedTopics.__new__(PagedTopics)
        after._stored = self._stored
        after._changes = {**self._changes, **changes}
        return after

    def changed_pages(self, changes: Changes, level: int) -> list[tuple[int, bytes]]:
        """Encode the pages whose slices ``changes`` touched, for a bus at ``level``.

        A page without topics is encoded as an empty list.
        """
        touched: dict[int, Page] = {}
        pages = self._stored.pages
        for name in changes:
            home = pages.home_of(name)
            for nth, now in _slices(self._stored.topic(name), self.get(name)):
                page = home + nth * pages.count
                held = touched.setdefault(page, dict(pages.page(page)))
                if now is None:
                    held.pop(name, None)
                else:
                    held[name] = now
        return [
            (page, encode_slices([one for _, one in sorted(held.items())], level))
            for page, held in sorted(touched.items())
        ]


def _slices(before: Topic | None, after: Topic | None) -> list[tuple[int, Slice | None]]:
    """List the slices that differ after a change, each with its place; None for one that is gone."""
    held = before.partitions if before is not None else None
    if before is None or after is None or not isinstance(held, StoredPartitions) or not _is_over(after, held):
        cut = [] if after is None else slices_of(after)
        count = held.slices if isinstance(held, StoredPartitions) else 0
        return [*enumerate(cut), *((nth, None) for nth in range(len(cut), count))]
    changed = _changed_places(after)
    if len(after.partitions) != len(held) or _head(before) != _head(after):
        changed.setdefault(0, {})
    return [(nth, _slice(after, held, nth, places)) for nth, places in sorted(changed.items())]


def _is_over(topic: Topic, held: StoredPartitions) -> bool:
    """Return whether a topic's partitions are changes over ``held``."""
    return isinstance(topic.partitions, WorkingPartitions) and topic.partitions.stored is held


def _changed_places(topic: Topic) -> dict[int, dict[int, Partition]]:
    """Return the changed partitions of each slice by their places in it."""
    assert isinstance(topic.partitions, WorkingPartitions)
    if len(topic.partitions) <= SLICE_PARTITIONS:
        return {0: topic.partitions.changed} if topic.partitions.changed else {}
    places: dict[int, dict[int, Partition]] = {}
    for number, partition in topic.partitions.changed.items():
        nth, place = divmod(number, SLICE_PARTITIONS)
        places.setdefault(nth, {})[place] = partition
    return places


def _slice(topic: Topic, held: StoredPartitions, nth: int, changed: dict[int, Partition]) -> Slice:
    unpacked = held.unpacked(nth) if nth < held.slices else Unpacked(pack(()))
    return slice_of(topic, nth, unpacked.with_changes(changed) if changed else unpacked.packed)


def _head(topic: Topic) -> tuple[object, ...]:
    return topic.topic_id, topic.state, topic.config, topic.deletion_waits
