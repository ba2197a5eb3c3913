"""A shard's topics in pages, each loaded when it is first needed."""

from collections.abc import Iterable
from typing import Protocol

from state.cluster import Changes
from state.codec import decode_slices, encode_slices
from state.ids import page_of, without_collisions
from state.partition import Topic
from state.slices import Slice, slices_of, whole

Page = dict[str, Slice]


class PageStore(Protocol):
    """Pages of bytes by number."""

    def load(self, page: int) -> bytes | None: ...
    def load_all(self) -> Iterable[tuple[int, bytes]]: ...


class _Loaded:
    """The pages of the store that were needed so far.

    The page of a topic's first slice follows from the topic's name (``home_of``). Each further slice is on the page
    ``pages`` after the one before. So no page holds two slices of one topic, however large the topic is.
    """

    def __init__(self, store: PageStore, shards: int, pages: int) -> None:
        self._store = store
        self._shards = shards
        self.pages = pages
        self._loaded: dict[int, Page] = {}
        self._all = False
        self._topics: dict[str, Topic] = {}

    def home_of(self, topic: str) -> int:
        """Return the page of a topic's first slice."""
        return page_of(topic, self._shards, self.pages)

    def page(self, page: int) -> Page:
        """Return the slices on a page by the names of their topics."""
        held = self._loaded.get(page)
        if held is None:
            body = None if self._all else self._store.load(page)
            held = self._loaded[page] = {} if body is None else _read(body)
        return held

    def load_all(self) -> None:
        if not self._all:
            for page, body in self._store.load_all():
                if page not in self._loaded:
                    self._loaded[page] = _read(body)
            self._all = True

    def names(self) -> Iterable[str]:
        """Return all names, each once."""
        self.load_all()
        return (name for page, held in self._loaded.items() if page < self.pages for name in held)

    def slices(self, topic: str) -> list[Slice]:
        """Return a topic's slices in order; none if the topic does not exist."""
        page = self.home_of(topic)
        first = self.page(page).get(topic)
        if first is None:
            return []
        slices, held = [first], len(first.topic.partitions)
        while held < first.count:
            page += self.pages
            other = self.page(page).get(topic)
            if other is None:
                break
            slices.append(other)
            held += len(other.topic.partitions)
        return slices

    def topic(self, name: str) -> Topic | None:
        """Return a topic, put together from its slices."""
        topic = self._topics.get(name)
        if topic is None:
            slices = self.slices(name)
            topic = whole(slices) if slices else None
            if topic is not None:
                self._topics[name] = topic
        return topic


def _read(body: bytes) -> Page:
    return {one.topic.topic: one for one in decode_slices(body)}


class PagedTopics:
    """The ``state.cluster.Topics`` over a page store.

    Only the pages that an event needs are read. A heartbeat reads none. ``changed`` returns a view over the same pages,
    and ``changed_pages`` says what to store for it.
    """

    def __init__(self, store: PageStore, shards: int, pages: int) -> None:
        self._stored = _Loaded(store, shards, pages)
        self._changes: dict[str, Topic | None] = {}

    def get(self, topic: str, /) -> Topic | None:
        return self._changes[topic] if topic in self._changes else self._stored.topic(topic)

    def names(self) -> list[str]:
        names = {name for name in self._stored.names() if name not in self._changes}
        return sorted(names | {name for name, topic in self._changes.items() if topic is not None})

    def twin_of(self, topic: str, /) -> str | None:
        """Look on one page only, because names that collide have the same hash."""
        unified = without_collisions(topic)
        stored = self._stored.page(self._stored.home_of(topic))
        names = (*(name for name in stored if name not in self._changes), *self._changes)
        return next(
            (n for n in names if without_collisions(n) == unified and self._changes.get(n, n) is not None), None
        )

    def changed(self, changes: Changes, /) -> "PagedTopics":
        after = PagedTopics.__new__(PagedTopics)
        after._stored = self._stored
        after._changes = {**self._changes, **changes}
        return after

    def changed_pages(self, changes: Changes) -> list[tuple[int, bytes]]:
        """Encode the pages whose slices ``changes`` touched. A page without topics is encoded as an empty list."""
        touched: dict[int, Page] = {}
        for name in changes:
            topic = self.get(name)
            before, after = self._stored.slices(name), [] if topic is None else slices_of(topic)
            for nth in range(max(len(before), len(after))):
                now = after[nth] if nth < len(after) else None
                if now is not None and nth < len(before) and now.is_same_as(before[nth]):
                    continue
                page = self._stored.home_of(name) + nth * self._stored.pages
                held = touched.setdefault(page, dict(self._stored.page(page)))
                if now is None:
                    held.pop(name, None)
                else:
                    held[name] = now
        return [
            (page, encode_slices([one for _, one in sorted(held.items())])) for page, held in sorted(touched.items())
        ]
